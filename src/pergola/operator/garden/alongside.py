"""Work that is done while something else runs."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def alongside(work: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Work while the block runs, and leave it when both are done.

    A block that fails, or is cancelled, cancels the work.

    Raises:
        Exception: What the work raised, once the block is done.
    """
    task = asyncio.create_task(work)
    try:
        yield
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
