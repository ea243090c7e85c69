"""Controllers and the caches that feed them, run as one.

What a process is made of: each controller's module builds one Unit, and the process runs those that
its configuration switches on.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Protocol, TypeAlias

from pergola.api.objects import GroupVersionKind


class Watching(Protocol):
    """A cache, whatever it keeps."""

    gvk: GroupVersionKind
    problem: str | None

    @property
    def is_synced(self) -> bool:
        """Whether reads can be trusted now."""
        ...

    async def synced(self) -> None:
        """Returns when the first list is complete."""
        ...

    async def run(self) -> None:
        """Keeps the cache up to date until cancelled."""
        ...


class Idle(Protocol):
    """A queue, whatever its keys are."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is ready and nothing runs."""
        ...


class Working(Protocol):
    """A controller, whatever its keys are."""

    name: str

    @property
    def queue(self) -> Idle:
        """What it has to do."""
        ...

    async def run(self) -> None:
        """Works until cancelled."""
        ...


Task: TypeAlias = Callable[[], Coroutine[None, None, None]]


class Unit:
    """Some controllers, and what must be watched before the first of them may start.

    Args:
        caches: what the controllers read and are woken by.
        tasks: what runs beside them, such as an event recorder.
    """

    def __init__(
        self,
        *,
        caches: Iterable[Watching] = (),
        controllers: Iterable[Working] = (),
        tasks: Iterable[Task] = (),
    ) -> None:
        self.caches = tuple(caches)
        self.controllers = tuple(controllers)
        self._tasks = tuple(tasks)

    async def run(self) -> None:
        """Fills the caches, then works; until cancelled, which can happen at any await."""
        async with asyncio.TaskGroup() as group:
            for cache in self.caches:
                group.create_task(cache.run(), name=f"watch {cache.gvk}")
            for task in self._tasks:
                group.create_task(task())
            await self.synced()
            for controller in self.controllers:
                group.create_task(controller.run(), name=controller.name)

    async def synced(self) -> None:
        """Returns when all first lists are complete."""
        for cache in self.caches:
            await cache.synced()

    @property
    def unsynced(self) -> list[str]:
        """The kinds whose watch is not live, each with the reason."""
        lost = (cache for cache in self.caches if not cache.is_synced)
        return [f"{cache.gvk}: {cache.problem or 'not listed yet'}" for cache in lost]

    @property
    def is_idle(self) -> bool:
        """Whether no controller has anything to do now."""
        return all(controller.queue.is_idle for controller in self.controllers)
