"""Work that lasts as long as a span."""

import asyncio

import pytest

from pergola.runtime.controlling.spans import work_until

pytestmark = pytest.mark.timeout(10)


class Work:
    """Endless work that records its progress."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()
        self.has_ended = False

    async def run(self) -> None:
        self.has_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # cleaning up takes a while
            self.has_ended = True


async def test_work_ends_with_its_span() -> None:
    work = Work()
    over = asyncio.Event()

    async def ended() -> None:
        await over.wait()

    async with asyncio.TaskGroup() as group:
        span = group.create_task(work_until(ended(), work.run()))
        await work.has_begun.wait()
        over.set()
    assert work.has_ended
    assert span.result() is None


async def test_completed_work_ends_the_wait() -> None:
    forever = asyncio.Event()

    async def ended() -> None:
        await forever.wait()

    async def done() -> str:
        await asyncio.sleep(0)
        return "done"

    assert await work_until(ended(), done()) == "done"


async def test_errors_of_the_work_are_raised() -> None:
    async def ended() -> None:
        await asyncio.Event().wait()

    async def failing() -> None:
        raise ValueError("broken") from OSError("disk")

    with pytest.raises(ValueError, match="broken") as error:
        await work_until(ended(), failing())
    assert isinstance(error.value.__cause__, OSError)


async def test_a_cancelled_span_cancels_its_work() -> None:
    work = Work()

    async def ended() -> None:
        await asyncio.Event().wait()

    span = asyncio.create_task(work_until(ended(), work.run()))
    await work.has_begun.wait()
    span.cancel()
    with pytest.raises(asyncio.CancelledError):
        await span
    assert work.has_ended
