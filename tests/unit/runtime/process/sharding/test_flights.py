import asyncio

import pytest

from pergola.runtime.clock import monotonic
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.process.sharding.flights import SETTLE_SECONDS, Flights

pytestmark = pytest.mark.looptime


class Work:
    """Runs that take a second each; some objects are assigned elsewhere."""

    def __init__(self) -> None:
        self.away: set[str] = set()
        self.done: list[str] = []
        self.flights = Flights[str](lambda key: key not in self.away)
        self.run = self.flights.tracked(self._run)

    async def _run(self, key: str) -> Outcome:
        await asyncio.sleep(1)
        if key == "bad":
            raise ValueError(key)
        self.done.append(key)
        return DONE


async def test_no_run_starts_for_an_object_of_another_shard() -> None:
    work = Work()
    work.away = {"b"}

    assert (await work.run("a"), await work.run("b")) == (DONE, DONE)

    assert work.done == ["a"]


async def test_an_object_is_idle_once_all_its_runs_have_ended() -> None:
    work = Work()
    runs = [asyncio.create_task(work.run(key)) for key in ("a", "a", "other")]
    await asyncio.sleep(0.5)
    runs.append(asyncio.create_task(work.run("a")))
    await asyncio.sleep(0.1)
    work.away = {"a"}

    await work.flights.landed("a")

    assert (monotonic(), work.done.count("a")) == (1.5, 3)
    await asyncio.gather(*runs)


async def test_an_object_is_idle_later_if_its_last_write_may_be_in_flight() -> None:
    work = Work()
    with pytest.raises(ValueError, match="bad"):
        await work.run("bad")

    await work.flights.landed("bad")

    assert monotonic() == 1 + SETTLE_SECONDS


async def test_a_cancelled_wait_for_an_object_forgets_no_write_in_flight() -> None:
    work = Work()
    with pytest.raises(ValueError, match="bad"):
        await work.run("bad")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(SETTLE_SECONDS / 2):
            await work.flights.landed("bad")

    await work.flights.landed("bad")

    assert monotonic() == 1 + SETTLE_SECONDS


async def test_a_cancelled_run_may_have_a_write_in_flight() -> None:
    work = Work()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await work.run("a")

    await work.flights.landed("a")

    assert monotonic() == 0.5 + SETTLE_SECONDS


async def test_an_object_without_runs_is_idle_at_once() -> None:
    await Work().flights.landed("a")

    assert monotonic() == 0


async def test_at_the_end_no_run_begins_and_current_runs_end() -> None:
    work = Work()
    run = asyncio.create_task(work.run("a"))
    await asyncio.sleep(0.5)

    assert await work.flights.close()
    await work.run("b")

    assert work.done == ["a"]
    await run


async def test_at_the_end_a_write_without_a_response_is_reported() -> None:
    work = Work()
    with pytest.raises(ValueError, match="bad"):
        await work.run("bad")

    assert not await work.flights.close()
