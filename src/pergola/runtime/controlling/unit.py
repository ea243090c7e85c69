"""Units: the building blocks of a process. Controllers run as a unit with the caches they need.

Each controller's module builds one Unit, and the process runs the units that its configuration
enables.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from pergola.api.objects import GroupVersionKind
from pergola.runtime.controlling.controller import Outcome, Workers
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics
from pergola.runtime.task_group import TaskGroup

K = TypeVar("K")


class Unsynced(NamedTuple):
    """A watch that is not live.

    Attributes:
        is_outage: whether the API server is unavailable, which a restart of this process cannot
            fix.
    """

    kind: str
    problem: str
    is_outage: bool

    def __str__(self) -> str:
        return f"{self.kind}: {self.problem}"


class Watching(Protocol):
    """A cache of any content."""

    gvk: GroupVersionKind

    @property
    def problem(self) -> str | None:
        """The reason why the watch last failed; None while it works."""
        ...

    @property
    def is_synced(self) -> bool:
        """Whether reads can be trusted now."""
        ...

    @property
    def is_outage(self) -> bool:
        """Whether the watch failed because the API server is unavailable or overloaded."""
        ...

    async def synced(self) -> None:
        """Wait until the first list is complete."""
        ...

    async def run(self) -> None:
        """Keep the cache up to date until cancelled."""
        ...


class Idle(Protocol):
    """A queue of any keys."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is ready or running."""
        ...


class Working(Protocol):
    """A controller of any keys."""

    name: str

    @property
    def queue(self) -> Idle:
        """Its pending work."""
        ...

    async def run(self) -> None:
        """Work until cancelled."""
        ...


def unsynced(caches: Iterable[Watching]) -> list[Unsynced]:
    """Return the watches that are not live, each with the reason."""
    return [
        Unsynced(str(cache.gvk), cache.problem or "not listed yet", cache.is_outage)
        for cache in caches
        if not cache.is_synced
    ]


Task: TypeAlias = Callable[[], Coroutine[None, None, None]]


class Part(Protocol):
    """A part of a process: a unit, or an object with the same interface."""

    @property
    def name(self) -> str:
        """Its name in logs and options."""
        ...

    @property
    def unsynced(self) -> Sequence[Unsynced]:
        """The watches that are not live, each with the reason."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do now."""
        ...

    async def run(self) -> None:
        """Work until cancelled, which may happen at any await."""
        ...

    async def synced(self) -> None:
        """Wait until all first lists are complete."""
        ...


class Unit:
    """One or several controllers, with the caches that must be filled before they start.

    Args:
        name: its name in options and logs; by default that of the first controller.
        caches: caches that the controllers read or that trigger them; omit those that another unit
            runs.
        beside: additional caches that the controllers do not wait for: a controller checks that one
            is synced before reading it.
        tasks: background tasks, such as an event recorder.
    """

    def __init__(
        self,
        name: str = "",
        *,
        caches: Iterable[Watching] = (),
        beside: Iterable[Watching] = (),
        controllers: Iterable[Working] = (),
        tasks: Iterable[Task] = (),
    ) -> None:
        self._needed = tuple(caches)
        self.caches = (*self._needed, *beside)
        self.controllers = tuple(controllers)
        self.name = name or next((controller.name for controller in self.controllers), "")
        self._tasks = tuple(tasks)

    async def run(self) -> None:
        """Fill the caches, then work until cancelled, which may happen at any await."""
        async with TaskGroup() as group:
            for cache in self.caches:
                group.create_task(cache.run(), name=f"watch {cache.gvk}")
            for task in self._tasks:
                group.create_task(task())
            await self.synced()
            for controller in self.controllers:
                group.create_task(controller.run(), name=controller.name)

    async def synced(self) -> None:
        """Wait until the first lists that the controllers need are complete."""
        for cache in self._needed:
            await cache.synced()

    @property
    def unsynced(self) -> list[Unsynced]:
        """The watches that are not live, each with the reason."""
        return unsynced(self.caches)

    @property
    def is_idle(self) -> bool:
        """Whether no controller has anything to do now."""
        return all(controller.queue.is_idle for controller in self.controllers)


class Controller(Unit):
    """A unit with one reconciler and what triggers it.

    Args:
        name: the name in metrics, logs and options.
        reconcile: reconciles one key, and never runs twice at once for the same key.
        watches: the events that trigger it.
        metrics: where to count its runs.
        workers: the number of keys to reconcile at once.
        deadline: the time limit of a run in seconds; None for no limit.
        caches: the caches that the unit keeps up to date; those of the watches by default.
        tasks: background tasks of the controller.
        at_start: keys to reconcile at the start, without an event.
    """

    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Awaitable[Outcome]],
        *,
        watches: Iterable[Watch[Any, K]],
        metrics: Metrics,
        workers: int = 1,
        deadline: float | None = None,
        caches: Iterable[Watching] | None = None,
        tasks: Iterable[Task] = (),
        at_start: Iterable[K] = (),
    ) -> None:
        watches = list(watches)
        pool = Workers(name, reconcile, workers=workers, metrics=metrics, deadline=deadline)
        for watch in watches:
            watch.trigger(pool.queue)
        for key in at_start:
            pool.queue.add(key)
        if caches is None:
            caches = dict.fromkeys(cache for watch in watches for cache in watch.caches)
        super().__init__(name, caches=caches, controllers=[pool], tasks=tasks)
