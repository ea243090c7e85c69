"""Work that runs concurrently with a block."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def alongside(work: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Run the work during the block, and return when both are done.

    A failure or cancellation of the block cancels the work.

    Raises:
        Exception: The error of the work, raised after the block.
    """
    task = asyncio.create_task(work)
    try:
        yield
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
