"""Repairs of one object are spaced after a burst (spec 10 B9)."""

from hypothesis import given
from hypothesis import strategies as st

from pergola.resource_manager.controllers.managed_resource.fights import (
    BURST,
    INTERVAL_SECONDS,
    FightLimit,
)


class _Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_of_repairs_is_not_delayed() -> None:
    limit = FightLimit(_Time())
    for _ in range(BURST):
        assert limit.delay("a") == 0
        limit.repaired("a")
    assert limit.delay("a") == INTERVAL_SECONDS


def test_a_repair_becomes_possible_again_with_time() -> None:
    time = _Time()
    limit = FightLimit(time)
    for _ in range(BURST):
        limit.repaired("a")
    time.now += INTERVAL_SECONDS
    assert limit.delay("a") == 0
    limit.repaired("a")
    assert limit.delay("a") == INTERVAL_SECONDS


def test_one_object_does_not_delay_another() -> None:
    limit = FightLimit(_Time())
    for _ in range(BURST):
        limit.repaired("a")
    assert limit.delay("b") == 0


@given(st.lists(st.floats(0, 30), max_size=200))
def test_repairs_never_exceed_the_burst_and_one_in_each_interval(pauses: list[float]) -> None:
    time = _Time()
    limit = FightLimit(time)
    repairs = 0
    for pause in pauses:
        time.now += pause
        if limit.delay("a") == 0:
            limit.repaired("a")
            repairs += 1
    assert repairs <= BURST + 1 + (time.now - 100) / INTERVAL_SECONDS


def test_a_remark_lasts_until_repairs_are_no_longer_spaced() -> None:
    time = _Time()
    limit = FightLimit(time)
    for _ in range(BURST):
        limit.repaired("a")
    assert limit.needs_remark("a")
    limit.note("a", "it is fought over")
    assert not limit.needs_remark("a")
    time.now += limit.ends_in("a") - 0.1
    assert limit.remark("a") == "it is fought over"
    time.now += 0.2
    assert limit.remark("a") == ""
