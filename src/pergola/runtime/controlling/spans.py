"""Work that is bound to a state of the world, such as that an object exists."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from pergola.runtime.task_group import TaskGroup

T = TypeVar("T")


async def work_until(ended: Coroutine[Any, Any, None], work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of the work, or None if something has ended before.

    The work is then cancelled, which can happen at any await, and has ended when this returns.

    Raises:
        Exception: What the work raised.
    """
    try:
        async with TaskGroup() as group:
            ending = group.create_task(ended)
            working = group.create_task(work)
            await asyncio.wait({ending, working}, return_when=asyncio.FIRST_COMPLETED)
            ending.cancel()
            working.cancel()
    except ExceptionGroup as failed:
        if len(failed.exceptions) > 1:
            raise
        raise failed.exceptions[0]  # noqa: B904 - keeps the cause that it has
    return None if working.cancelled() else working.result()
