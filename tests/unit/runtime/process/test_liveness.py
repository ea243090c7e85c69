"""Readiness and liveness of the process: spec 10 §13.3 and §13.4."""

import pytest

from pergola.runtime.controlling.unit import Unsynced
from pergola.runtime.process.liveness import UNSYNCED_SECONDS, SyncChecks

NOT_LISTED = Unsynced("example.org/v1/Gadget", "not listed yet", is_outage=False)
CUT_OFF = Unsynced("v1/Pod", "cannot reach https://api", is_outage=True)


class _World:
    def __init__(self) -> None:
        self.now = 0.0
        self.unsynced: list[Unsynced] = []
        self.checks = SyncChecks(lambda: self.unsynced, lambda: self.now)


def test_a_watch_without_its_first_list_is_unready_at_once_and_unhealthy_after_three_minutes() -> (
    None
):
    world = _World()
    assert world.checks.ready() is None
    world.unsynced = [NOT_LISTED]
    assert world.checks.ready() == "example.org/v1/Gadget: not listed yet"
    assert world.checks.healthy() is None
    world.now = UNSYNCED_SECONDS - 1
    assert world.checks.healthy() is None
    world.now = UNSYNCED_SECONDS
    problem = world.checks.healthy()
    assert problem is not None
    assert "example.org/v1/Gadget" in problem


def test_a_recovered_watch_restarts_the_three_minutes() -> None:
    world = _World()
    world.unsynced = [NOT_LISTED]
    assert world.checks.healthy() is None
    world.now = 170.0
    world.unsynced = []
    assert world.checks.healthy() is None
    world.unsynced = [NOT_LISTED]
    world.now = 190.0
    assert world.checks.healthy() is None
    world.now = 190.0 + UNSYNCED_SECONDS
    assert world.checks.healthy() is not None


@pytest.mark.parametrize("others", [[], [NOT_LISTED]])
def test_an_outage_of_the_api_server_makes_the_process_unready_but_never_unhealthy(
    others: list[Unsynced],
) -> None:
    world = _World()
    world.unsynced = [CUT_OFF, *others]
    assert world.checks.ready() is not None
    world.now = 100 * UNSYNCED_SECONDS
    world.unsynced = [CUT_OFF]
    assert world.checks.ready() == "v1/Pod: cannot reach https://api"
    assert world.checks.healthy() is None


def test_the_three_minutes_begin_once_the_api_server_is_reachable_again() -> None:
    world = _World()
    world.unsynced = [CUT_OFF]
    assert world.checks.healthy() is None
    world.now = 1000.0
    world.unsynced = [NOT_LISTED]
    assert world.checks.healthy() is None
    world.now = 1000.0 + UNSYNCED_SECONDS
    assert world.checks.healthy() is not None
