"""Background work during a flow."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager


@asynccontextmanager
async def beside(
    work: Coroutine[None, None, None], *, stop: Callable[[], None], limit: float
) -> AsyncGenerator[None]:
    """Run `work` in the background; when the block ends, for whatever reason, let `work` finish.

    Args:
        stop: makes `work` complete its current step and return.
        limit: the seconds after which it is cancelled.
    """
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        stop()
        await _finish(task, limit)


async def _finish(task: "asyncio.Task[None]", limit: float) -> None:
    try:
        async with asyncio.timeout(limit):
            await task
    except TimeoutError:
        if not task.cancelled():
            raise
