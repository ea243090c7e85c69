"""Waiting for extension resources, and tolerated errors (spec 40 §4)."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.extension_api.caller import (
    NETWORK,
    NotDeleted,
    NotMigrated,
    NotReady,
    Progress,
    Waiting,
    wait_deleted,
    wait_migrated,
    wait_ready,
)
from pergola.extension_api.caller.wait import PLAIN_WAIT
from pergola.extension_api.errors import Code
from pergola.kube.client import Client
from pergola.kube.errors import KubeError, UnknownKind, Unreachable
from pergola.kube.states import State, States
from pergola.runtime.clock import monotonic

pytestmark = pytest.mark.looptime(start=0)

KEY = Key("shoot--a--demo", "demo")
ASKED = "2026-03-01T10:00:00.900000000Z"
SUCCEEDED: JsonObject = {"type": "Create", "state": "Succeeded", "progress": 100}


def network(**status: Any) -> JsonObject:
    said = {"observedGeneration": 1, "observedTimestamp": ASKED} | status
    return {
        "metadata": {"generation": 1, "annotations": {"gardener.cloud/timestamp": ASKED}},
        "status": said,
    }


READY = network(lastOperation=SUCCEEDED)
FAILED = network(
    lastOperation={"type": "Create", "state": "Error", "progress": 50},
    lastError={"description": "no such pool", "codes": ["ERR_CONFIGURATION_PROBLEM"]},
)
PROCESSING = network(
    lastOperation={
        "type": "Create",
        "state": "Processing",
        "progress": 1,
        "description": "Reconciling the Network",
    }
)


class Nobody(Client):
    """A client without an API server; the script of a test provides the states."""

    def __init__(self) -> None:
        pass


def script(*steps: tuple[float, State | KubeError]) -> Callable[[], States]:
    """Return states that each follow after the given seconds; the last one stays."""

    async def states() -> AsyncGenerator[State]:
        for pause, state in steps:
            await asyncio.sleep(pause)
            if isinstance(state, KubeError):
                raise state
            yield state
        await asyncio.Event().wait()

    return states


def plan(*steps: tuple[float, State | KubeError], **more: Any) -> Waiting:
    return Waiting(states=script(*steps), **more)


async def ready(*steps: tuple[float, State | KubeError], **more: Any) -> JsonObject:
    return await wait_ready(Nobody(), NETWORK, KEY, plan(*steps, **more), expected=ASKED)


async def test_the_wait_ends_at_the_moment_of_success() -> None:
    assert await ready((0, PROCESSING), (12.3, READY)) == READY
    assert monotonic() == pytest.approx(12.3)


async def test_a_lasting_error_ends_the_wait_at_the_seventh_poll() -> None:
    with pytest.raises(NotReady) as caught:
        await ready((0, FAILED), (40, READY))
    assert monotonic() == pytest.approx(30)
    assert str(caught.value) == (
        "Error while waiting for Network shoot--a--demo/demo to become ready: "
        "error during reconciliation: no such pool"
    )
    assert caught.value.codes == (Code.CONFIGURATION_PROBLEM,)


async def test_an_error_that_disappears_within_thirty_seconds_is_tolerated() -> None:
    assert await ready((0, FAILED), (29.9, READY)) == READY


async def test_a_late_error_ends_the_wait_at_the_next_poll() -> None:
    with pytest.raises(NotReady):
        await ready((0, PROCESSING), (61, FAILED))
    assert monotonic() == pytest.approx(65)


async def test_an_error_between_two_checks_is_ignored() -> None:
    assert await ready((0, PROCESSING), (61, FAILED), (2, READY)) == READY


async def test_everything_else_is_tolerated_until_the_timeout() -> None:
    with pytest.raises(NotReady, match="extension state is not succeeded but Processing"):
        await ready((0, None), (20, PROCESSING))
    assert monotonic() == pytest.approx(180)


async def test_an_explicit_timeout_is_used() -> None:
    with pytest.raises(NotReady, match="it does not exist"):
        await ready((0, None), timeout=7)
    assert monotonic() == pytest.approx(7)


async def test_a_read_error_is_final() -> None:
    with pytest.raises(Unreachable):
        await ready((0, PROCESSING), (2, Unreachable("refused")))
    assert monotonic() == pytest.approx(2)


async def test_a_success_without_an_echo_must_last() -> None:
    unsure: JsonObject = {**SUCCEEDED, "lastUpdateTime": "2026-03-01T10:00:03Z"}
    seen = network(observedTimestamp=None, lastOperation=unsure)
    with pytest.raises(NotReady):
        await ready((0, seen), (0.2, PROCESSING))


async def test_a_success_without_an_echo_is_accepted_after_a_second() -> None:
    unsure: JsonObject = {**SUCCEEDED, "lastUpdateTime": "2026-03-01T10:00:03Z"}
    seen = network(observedTimestamp=None, lastOperation=unsure)
    # An equal state does not prolong the wait.
    assert await ready((4, seen), (0.6, seen)) == seen
    assert monotonic() == pytest.approx(5)


async def test_progress_is_reported_when_it_changes() -> None:
    reported: list[Progress] = []
    await ready((0, None), (1, PROCESSING), (20, READY), report=reported.append)
    assert reported == [Progress(0, "it does not exist"), Progress(1, "Reconciling the Network")]


async def test_a_reason_is_searched_at_each_poll_and_added_to_the_error() -> None:
    reported: list[Progress] = []

    async def explain(state: State) -> str:
        return "extension x is not running since T"

    with pytest.raises(NotReady, match=r"it does not exist; extension x is not running since T$"):
        await ready((0, None), report=reported.append, explain=explain, timeout=12)
    assert [progress.hint for progress in reported] == ["", "extension x is not running since T"]


@pytest.mark.parametrize("timeout", [0.5, 5, 5.5])
async def test_a_reason_is_searched_at_the_end_of_a_short_wait(timeout: float) -> None:
    async def explain(state: State) -> str:
        return "extension x is not running since T"

    with pytest.raises(NotReady, match=r"it does not exist; extension x is not running since T$"):
        await ready((0, None), explain=explain, timeout=timeout)


async def test_an_explanation_that_takes_too_long_is_skipped() -> None:
    async def explain(state: State) -> str:
        await asyncio.Event().wait()
        return ""

    assert await ready((0, PROCESSING), (31, READY), explain=explain) == READY


async def test_a_migration_ends_with_a_successful_migrate_and_tolerates_errors() -> None:
    done = network(lastOperation={**SUCCEEDED, "type": "Migrate"})
    waiting = plan((0, FAILED), (100, done))
    assert await wait_migrated(Nobody(), NETWORK, KEY, waiting) == done
    assert await wait_migrated(Nobody(), NETWORK, KEY, plan((0, FAILED), (1, None))) is None


async def test_a_failing_migration_is_reported_at_the_timeout() -> None:
    with pytest.raises(NotMigrated) as caught:
        await wait_migrated(Nobody(), NETWORK, KEY, plan((0, FAILED)))
    assert monotonic() == pytest.approx(180)
    assert "to be migrated: error during migration: no such pool" in str(caught.value)
    assert caught.value.codes == (Code.CONFIGURATION_PROBLEM,)


async def test_a_deletion_ends_when_the_object_or_its_kind_is_gone() -> None:
    await wait_deleted(Nobody(), NETWORK, KEY, plan((0, FAILED), (50, None)))
    assert monotonic() == pytest.approx(50)
    await wait_deleted(Nobody(), NETWORK, KEY, plan((0, UnknownKind(NETWORK.gvk))))


async def test_the_error_about_a_failed_deletion_has_the_last_error_and_its_codes() -> None:
    with pytest.raises(NotDeleted) as caught:
        await wait_deleted(Nobody(), NETWORK, KEY, plan((0, FAILED)))
    assert str(caught.value) == "Failed to delete Network shoot--a--demo/demo: no such pool"
    assert caught.value.codes == (Code.CONFIGURATION_PROBLEM,)


def test_a_plain_wait_uses_the_timeout_of_the_kind() -> None:
    assert PLAIN_WAIT.timeout is None
    assert (NETWORK.interval, NETWORK.severe, NETWORK.timeout) == (5, 30, 180)
