"""Actions of simulated programs that follow changes of objects."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from pergola.runtime.caching.cache import Cache, Change

V = TypeVar("V")
T = TypeVar("T")


@asynccontextmanager
async def reacting(
    cache: Cache[V], due: Callable[[Change[V]], T | None], act: Callable[[T], Awaitable[None]]
) -> AsyncGenerator[None]:
    """Act on changes of objects until the block ends, one after the other.

    Args:
        cache: of the objects, which this runs.
        due: returns what to act on; None if a change needs no action.
    """
    waiting: asyncio.Queue[T] = asyncio.Queue()

    def on_change(change: Change[V]) -> None:
        if (item := due(change)) is not None:
            waiting.put_nowait(item)

    async def act_on_all() -> None:
        while True:
            await act(await waiting.get())

    cache.subscribe(on_change)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(cache.run()), group.create_task(act_on_all())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
