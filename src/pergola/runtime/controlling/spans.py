"""Work that lasts as long as a condition holds, such as the existence of an object."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from pergola.runtime.task_group import TaskGroup

T = TypeVar("T")


async def work_until(ended: Coroutine[Any, Any, None], work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of the work, or None if `ended` completes first.

    In that case the work is cancelled, at any await, and has ended when this returns.

    Raises:
        Exception: The error that the work raised.
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
