"""Controllers and the caches that feed them, run as one.

What a process is made of: each controller's module builds one Unit, and the process runs those that
its configuration switches on.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import NamedTuple, Protocol, TypeAlias

from pergola.api.objects import GroupVersionKind


class Unsynced(NamedTuple):
    """A watch that is not live.

    Attributes:
        is_outage: whether the API server is away, which a restart of this process cannot mend.
    """

    kind: str
    problem: str
    is_outage: bool

    def __str__(self) -> str:
        return f"{self.kind}: {self.problem}"


class Watching(Protocol):
    """A cache, whatever it keeps."""

    gvk: GroupVersionKind

    @property
    def problem(self) -> str | None:
        """Why the watch failed last; None while it works."""
        ...

    @property
    def is_synced(self) -> bool:
        """Whether reads can be trusted now."""
        ...

    @property
    def is_outage(self) -> bool:
        """Whether the watch failed because the API server is away or overloaded."""
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


def unsynced(caches: Iterable[Watching]) -> list[Unsynced]:
    """Return the watches that are not live, each with the reason."""
    return [
        Unsynced(str(cache.gvk), cache.problem or "not listed yet", cache.is_outage)
        for cache in caches
        if not cache.is_synced
    ]


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
    def unsynced(self) -> list[Unsynced]:
        """The watches that are not live, each with the reason."""
        return unsynced(self.caches)

    @property
    def is_idle(self) -> bool:
        """Whether no controller has anything to do now."""
        return all(controller.queue.is_idle for controller in self.controllers)
