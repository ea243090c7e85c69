"""The queue of a controller: spec 10 §4.1's requeue rules, under virtual time."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pergola.runtime.controlling.queue import Queue

pytestmark = pytest.mark.looptime(start=0)


async def test_a_key_added_twice_while_waiting_runs_once() -> None:
    queue: Queue[str] = Queue()
    queue.add("a")
    queue.add("a")
    assert await queue.get() == "a"
    queue.done("a")
    assert queue.is_idle


async def test_a_key_added_while_running_runs_again_afterwards() -> None:
    queue: Queue[str] = Queue()
    queue.add("a")
    await queue.get()
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert len(queue) == 1


async def test_keys_are_processed_in_the_order_of_addition() -> None:
    queue: Queue[str] = Queue()
    for key in "cab":
        queue.add(key)
    assert [await queue.get() for _ in range(3)] == ["c", "a", "b"]


async def test_the_earliest_of_several_times_counts() -> None:
    queue: Queue[str] = Queue()
    queue.add_after("a", 10)
    queue.add_after("a", 3)
    queue.add_after("a", 20)
    await queue.get()
    assert asyncio.get_running_loop().time() == pytest.approx(3, abs=0.01)
    queue.done("a")
    await asyncio.sleep(60)
    assert queue.is_idle


async def test_a_queue_may_limit_the_backoff() -> None:
    queue: Queue[str] = Queue(last_retry=30)
    delays = [queue.retry("a") for _ in range(20)]
    assert delays[:3] == pytest.approx([0.005, 0.01, 0.02])
    assert delays[-1] == 30


async def test_failures_are_requeued_exponentially_later_up_to_1000_seconds() -> None:
    queue: Queue[str] = Queue()
    delays = [queue.retry("a") for _ in range(25)]
    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert delays[-1] == 1000.0


async def test_a_failure_can_be_requeued_sooner() -> None:
    queue: Queue[str] = Queue()
    delays = [queue.retry("a", 10) for _ in range(25)]
    assert delays[:3] == pytest.approx([0.005, 0.01, 0.02])
    assert delays[-1] == 10
    assert queue.retry("b", 2000) == 0.005


async def test_a_success_resets_the_backoff_of_the_queue() -> None:
    queue: Queue[str] = Queue()
    for _ in range(10):
        queue.retry("a")
    queue.forget("a")
    assert queue.retry("a") == 0.005


async def test_one_failing_key_does_not_delay_another() -> None:
    queue: Queue[str] = Queue()
    for _ in range(30):
        queue.retry("bad")
    assert queue.retry("good") == 0.005


async def test_failures_together_are_limited_to_ten_a_second_after_a_burst() -> None:
    queue: Queue[int] = Queue()
    delays = [queue.retry(key) for key in range(120)]
    assert delays[99] == 0.005
    assert delays[119] == pytest.approx(2.0)


async def test_a_cancelled_worker_loses_no_key() -> None:
    queue: Queue[str] = Queue()
    first = asyncio.create_task(queue.get())
    second = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await asyncio.wait_for(second, 1) == "a"
    with pytest.raises(asyncio.CancelledError):
        await first


class _Machine(RuleBasedStateMachine):
    """In any order of events, a key is always run after it was last added."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.queue: Queue[int] = Queue()
        self.running: set[int] = set()
        self.owed: set[int] = set()

    def teardown(self) -> None:
        self.loop.close()

    def _do(self, step: Callable[[], None]) -> None:
        async def run() -> None:
            step()

        self.loop.run_until_complete(run())

    @rule(key=st.integers(0, 3))
    def add(self, key: int) -> None:
        self._do(lambda: self.queue.add(key))
        self.owed.add(key)

    @precondition(lambda self: len(self.queue) > 0)
    @rule()
    def get(self) -> None:
        key = self.loop.run_until_complete(self.queue.get())
        assert key not in self.running
        self.running.add(key)
        self.owed.discard(key)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.running)))
        self._do(lambda: self.queue.done(key))
        self.running.discard(key)

    @invariant()
    def nothing_is_lost(self) -> None:
        assert self.queue.is_idle == (not self.owed and not self.running)
        assert len(self.queue) == len(self.owed - self.running)


TestQueueMachine = _Machine.TestCase


async def test_cancelled_times_do_not_accumulate() -> None:
    queue: Queue[str] = Queue()
    for _ in range(2_000):
        queue.add_after("a", 3600)
        queue.cancel("a")
    queue.add_after("a", 1)
    queue.add_after("b", 2)
    assert len(queue._heap) < 1000
    assert [await queue.get(), await queue.get()] == ["a", "b"]
