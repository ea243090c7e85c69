"""When the process is unready, and when it should be restarted: spec 10 §13.3 and §13.4."""

from pergola.resource_manager.liveness import UNSYNCED_SECONDS, SyncChecks


class _World:
    def __init__(self) -> None:
        self.now = 0.0
        self.unsynced: list[str] = []
        self.checks = SyncChecks(lambda: self.unsynced, lambda: self.now)


def test_a_watch_without_its_first_list_is_unready_at_once_and_unhealthy_after_three_minutes() -> (
    None
):
    world = _World()
    assert world.checks.ready() is None
    world.unsynced = ["example.org/v1/Gadget: not listed yet"]
    assert world.checks.ready() == "example.org/v1/Gadget: not listed yet"
    assert world.checks.healthy() is None
    world.now = UNSYNCED_SECONDS - 1
    assert world.checks.healthy() is None
    world.now = UNSYNCED_SECONDS
    problem = world.checks.healthy()
    assert problem is not None
    assert "example.org/v1/Gadget" in problem


def test_a_watch_that_came_back_starts_the_three_minutes_over() -> None:
    world = _World()
    world.unsynced = ["v1/Pod: gone"]
    assert world.checks.healthy() is None
    world.now = 170.0
    world.unsynced = []
    assert world.checks.healthy() is None
    world.unsynced = ["v1/Pod: gone"]
    world.now = 190.0
    assert world.checks.healthy() is None
    world.now = 190.0 + UNSYNCED_SECONDS
    assert world.checks.healthy() is not None
