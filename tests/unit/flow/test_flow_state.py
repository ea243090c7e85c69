"""The state of a flow, and when it is written: spec 30 §1.3 and §13, under virtual time."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable

import pytest

from pergola.flow.errors import StateNotSaved
from pergola.flow.retry import Retry
from pergola.flow.saving import Saver
from pergola.flow.state import RUNNING_TASK, State

pytestmark = pytest.mark.looptime(start=0)

Data = dict[str, str]


def now() -> float:
    return asyncio.get_running_loop().time()


class Store:
    """A store that records writes and their times; it can be slow, and can fail."""

    def __init__(self, latency: float = 0.0, failures: int = 0) -> None:
        self.latency = latency
        self.failures = failures
        self.writes: list[tuple[float, Data]] = []
        self.attempts: list[float] = []

    async def write(self, data: Data) -> None:
        self.attempts.append(now())
        await asyncio.sleep(self.latency)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("no route to host")
        self.writes.append((round(now(), 3), data))


def in_task(name: str, act: Callable[[], object]) -> None:
    token = RUNNING_TASK.set(name)
    act()
    RUNNING_TASK.reset(token)


def test_an_empty_value_counts_as_absent_and_is_preserved() -> None:
    state = State({"VPC": "", "Zones/a/Suffix": "z0", "Zones/b/Suffix": "", "Zonesque": "x"})
    assert state.get("VPC") is None
    assert state.get("missing") is None
    assert state.under("Zones") == {"a/Suffix": "z0"}
    assert state.snapshot()["VPC"] == ""


def test_a_forgotten_value_is_removed() -> None:
    state = State({"VPC": "vpc-1"})
    state.forget("VPC")
    state.forget("never there")
    assert state.snapshot() == {}
    assert state.version == 1


def test_setting_the_same_value_is_not_a_change() -> None:
    state = State({"VPC": "vpc-1", "EFS": ""})
    state.set("VPC", "vpc-1")
    state.created("VPC", "vpc-1")
    state.set("EFS", "")
    assert state.version == 0


def test_the_original_map_is_not_modified() -> None:
    read = {"VPC": "vpc-1"}
    State(read).set("VPC", "vpc-2")
    assert read == {"VPC": "vpc-1"}


def test_creations_are_recorded_by_task() -> None:
    state = State()
    in_task("a", lambda: state.created("A", "1"))
    in_task("b", lambda: state.set("B", "1"))
    assert state.created_by("a") == state.created_last == 1
    assert state.created_by("b") == 0
    assert state.version == 2


async def test_creations_are_written_immediately() -> None:
    store, state = Store(), State()
    async with Saver(state, store.write).running():
        await asyncio.sleep(3)
        state.created("VPC", "vpc-1")
        await asyncio.sleep(0.01)
        assert store.writes == [(3, {"VPC": "vpc-1"})]


async def test_other_changes_are_written_at_most_once_a_second() -> None:
    store, state = Store(), State()
    async with Saver(state, store.write).running():
        for number in range(35):
            state.set("EgressCIDRs", str(number))
            await asyncio.sleep(0.1)
    *regular, last = [when for when, _ in store.writes]
    assert all(after - before >= 1 for before, after in itertools.pairwise([0, *regular]))
    assert (len(regular), last) == (3, 3.5)
    assert store.writes[-1][1] == {"EgressCIDRs": "34"}


async def test_creations_during_a_write_share_the_next_one() -> None:
    store, state = Store(latency=0.5), State()
    async with Saver(state, store.write).running():
        for number in range(5):
            state.created(f"Subnet/{number}", "subnet")
            await asyncio.sleep(0.05)
        await asyncio.sleep(2)
        assert [(when, len(data)) for when, data in store.writes] == [(0.5, 1), (1.0, 5)]


async def test_earlier_changes_are_written_with_a_creation() -> None:
    store, state = Store(), State()
    async with Saver(state, store.write).running():
        state.set("Zones/a/Suffix", "z0")
        await asyncio.sleep(0.2)
        state.created("VPC", "vpc-1")
        await asyncio.sleep(5)
    assert store.writes == [(0.2, {"Zones/a/Suffix": "z0", "VPC": "vpc-1"})]


async def test_an_unchanged_state_is_not_written() -> None:
    store, state = Store(), State({"VPC": "vpc-1"})
    async with Saver(state, store.write).running():
        state.set("VPC", "vpc-1")
        await asyncio.sleep(10)
    assert store.attempts == []


async def test_pending_changes_are_written_when_an_error_leaves_the_block() -> None:
    store, state = Store(), State()

    async def work() -> None:
        async with Saver(state, store.write).running():
            state.set("VPC", "vpc-1")
            raise LookupError

    with pytest.raises(LookupError):
        await work()
    assert store.writes == [(0, {"VPC": "vpc-1"})]


async def test_pending_changes_are_written_on_cancellation() -> None:
    store, state = Store(latency=1), State()

    async def work() -> None:
        async with Saver(state, store.write).running():
            state.set("VPC", "vpc-1")
            await asyncio.sleep(100)

    task = asyncio.create_task(work())
    await asyncio.sleep(0.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert store.writes == [(1.5, {"VPC": "vpc-1"})]


async def test_a_failed_write_is_retried_with_backoff() -> None:
    store, state = Store(failures=3), State()
    retry = Retry(attempts=8, first_seconds=1, jitter=0)
    saver = Saver(state, store.write, retry=retry)
    async with saver.running():
        in_task("a", lambda: state.created("VPC", "vpc-1"))
        assert saver.unsaved is not None
        await saver.durable("a")
        assert store.attempts == pytest.approx([0, 1, 3, 7], abs=0.01)
        assert saver.unsaved is None


async def test_a_task_that_created_nothing_waits_for_no_write() -> None:
    store, state = Store(latency=5), State()
    saver = Saver(state, store.write)
    async with saver.running():
        in_task("a", lambda: state.created("VPC", "vpc-1"))
        in_task("b", lambda: state.set("CIDR", "10.0.0.0/16"))
        await asyncio.sleep(1)
        await saver.durable("b")
        assert now() == pytest.approx(1)
        await saver.durable("a")
        assert now() == pytest.approx(5)


async def test_a_write_confirms_only_changes_made_before_it_began() -> None:
    store, state = Store(latency=2), State()
    saver = Saver(state, store.write)
    async with saver.running():
        in_task("a", lambda: state.created("VPC", "vpc-1"))
        await asyncio.sleep(1)
        in_task("b", lambda: state.created("IGW", "igw-1"))
        await saver.durable("b")
        assert now() == pytest.approx(4)


async def test_waiting_tasks_get_a_lasting_write_failure_and_writing_continues() -> None:
    store, state = Store(failures=4), State()
    saver = Saver(state, store.write, retry=Retry(attempts=3, first_seconds=1, jitter=0))
    async with saver.running():
        in_task("a", lambda: state.created("VPC", "vpc-1"))
        with pytest.raises(StateNotSaved, match="could not be saved: ConnectionError: no route"):
            await saver.durable("a")
        assert now() == pytest.approx(3, abs=0.01)
        await saver.durable("a")
    assert store.writes[0][1] == {"VPC": "vpc-1"}


async def test_flush_writes_pending_changes_immediately() -> None:
    store, state = Store(latency=0.25), State()
    saver = Saver(state, store.write)
    async with saver.running():
        state.set("Zones/a/Suffix", "z0")
        await saver.flush()
        assert store.writes == [(0.25, {"Zones/a/Suffix": "z0"})]
        await saver.flush()
        assert len(store.attempts) == 1


async def test_the_last_write_is_abandoned_after_a_while_with_a_reason() -> None:
    store, state = Store(failures=1000), State()
    saver = Saver(state, store.write, closing_seconds=4)
    async with saver.running():
        state.set("VPC", "vpc-1")
    assert now() == pytest.approx(4)
    assert isinstance(saver.unsaved, StateNotSaved)
    assert isinstance(saver.unsaved.cause, ConnectionError)


async def test_the_last_write_does_not_wait_for_the_backoff() -> None:
    store, state = Store(failures=1), State()
    async with Saver(state, store.write, retry=Retry.every(60, 8)).running():
        state.created("VPC", "vpc-1")
        await asyncio.sleep(2)
    assert store.attempts == [0, 2]
    assert len(store.writes) == 1


async def test_a_timer_that_ends_before_its_time_is_not_set_again_and_again() -> None:
    """Rounding decides whether a timer ends a little early, so many delays are tried."""
    for seed in range(1000):
        store, state = Store(failures=1), State()
        source = random.Random(seed)  # noqa: S311 - spreads retries
        async with Saver(state, store.write, source=source).running():
            state.created("VPC", "vpc-1")
            await asyncio.sleep(2)
            assert len(store.writes) == 1


@pytest.mark.parametrize("hang", [asyncio.Event().wait, asyncio.Future])
async def test_a_write_that_hangs_or_is_cancelled_counts_as_failed(
    hang: Callable[[], Awaitable[object]],
) -> None:
    stored: list[Data] = []
    is_first = True

    async def write(data: Data) -> None:
        nonlocal is_first
        if is_first:
            is_first = False
            waiting = asyncio.ensure_future(hang())
            if isinstance(hang, type):
                waiting.cancel()
            await waiting
        stored.append(data)

    state = State()
    saver = Saver(state, write)
    async with saver.running():
        in_task("a", lambda: state.created("VPC", "vpc-1"))
        await saver.durable("a")
    assert stored == [{"VPC": "vpc-1"}]
