"""Work that goes on beside a run of a flow and ends with it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager


@asynccontextmanager
async def beside(
    work: Coroutine[None, None, None], *, stop: Callable[[], None], limit: float
) -> AsyncGenerator[None]:
    """Runs `work` beside the block; when the block is left, however it is, `work` may finish.

    Args:
        stop: asks `work` to finish what it has begun, and to end.
        limit: seconds after which it is cancelled.
    """
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        stop()
        await _finish(task, limit)


def is_being_cancelled() -> bool:
    """Whether somebody asked the running asyncio task to end; else a cancellation is its own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _finish(task: "asyncio.Task[None]", limit: float) -> None:
    try:
        async with asyncio.timeout(limit):
            await task
    except TimeoutError:
        if not task.cancelled():
            raise
