"""Watches of the target, which start when they are first needed."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from pergola.api import marks
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Subscriber
from pergola.runtime.logging import get_logger
from pergola.runtime.task_group import TaskGroup

log = get_logger("target")
T = TypeVar("T")

_FIRST_LIST_SECONDS: Final = 5.0


class Watches:
    """The caches of the target cluster, one for each watched namespace.

    Args:
        managed_by: the value of the `managed-by` label that marks our objects.
        namespaces: the namespaces to watch namespaced kinds in; all if empty.
    """

    def __init__(self, client: Client, *, managed_by: str, namespaces: Collection[str]) -> None:
        self.client = client
        self._managed_by = managed_by
        self._namespaces: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._needed: asyncio.Queue[Cache[Any]] = asyncio.Queue()
        self._tasks: dict[Cache[Any], asyncio.Task[None] | None] = {}

    async def run(self) -> None:
        """Run watches as they are needed, until cancelled."""
        async with TaskGroup() as group:
            while True:
                cache = await self._needed.get()
                if cache in self._tasks:
                    task = group.create_task(cache.run(), name=f"watch {cache.gvk}")
                    self._tasks[cache] = task

    def reach(self, namespace: str) -> bool:
        """Return whether namespaced kinds are watched in a namespace."""
        return self._namespaces == (None,) or namespace in self._namespaces

    def is_ours(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object has the label that marks our objects."""
        return labels.get(marks.MANAGED_BY) == self._managed_by

    def make(
        self,
        gvk: GroupVersionKind,
        keep: Callable[[JsonObject], T],
        subscriber: Subscriber[T] | None = None,
        *,
        only_ours: bool = True,
        namespaced: bool = True,
    ) -> "Watched[T]":
        """Create the caches of a kind and start them; the first lists may take a while."""
        labels = f"{marks.MANAGED_BY}={self._managed_by}" if only_ours else None
        caches = [
            Cache(self.client, gvk, keep, namespace=namespace, labels=labels)
            for namespace in (self._namespaces if namespaced else (None,))
        ]
        for cache in caches:
            if subscriber is not None:
                cache.subscribe(subscriber)
            self.start(cache)
        return Watched(caches)

    def start(self, cache: Cache[Any]) -> None:
        """Start a cache."""
        self._tasks[cache] = None
        self._needed.put_nowait(cache)

    def stop(self, cache: Cache[Any]) -> None:
        """Stop a cache for good."""
        task = self._tasks.pop(cache, None)
        if task is not None:
            task.cancel()


class Watched(Generic[T]):
    """The caches of one kind.

    All users of the kind wait for its first lists, but together no longer than a moment; after
    that, objects are read directly.
    """

    def __init__(self, caches: Sequence[Cache[T]]) -> None:
        self.caches = caches
        self._until = asyncio.get_running_loop().time() + _FIRST_LIST_SECONDS
        self._is_listed = False
        self._is_late = False

    async def listed(self) -> bool:
        """Return whether the first lists are complete, after waiting for them."""
        if self._is_listed:
            return True
        try:
            async with asyncio.timeout_at(self._until) as limit:
                for cache in self.caches:
                    await cache.synced()
        except TimeoutError:
            if not limit.expired():
                raise
            self._report()
            return False
        self._is_listed = True
        return True

    def _report(self) -> None:
        if not self._is_late:
            self._is_late = True
            log.error("first list is taking long", kind=str(self.caches[0].gvk))
