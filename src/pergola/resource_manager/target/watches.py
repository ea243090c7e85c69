"""Watches of the target, which start when they are first needed."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

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
        namespaces: watch namespaced kinds only there; everywhere if empty.
    """

    def __init__(self, client: Client, *, managed_by: str, namespaces: Collection[str]) -> None:
        self.client = client
        self._managed_by = managed_by
        self._namespaces: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._needed: asyncio.Queue[Cache[Any]] = asyncio.Queue()

    async def run(self) -> None:
        """Run watches as they are needed, until cancelled."""
        async with TaskGroup() as group:
            while True:
                cache = await self._needed.get()
                group.create_task(cache.run(), name=f"watch {cache.gvk}")

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
    ) -> list[Cache[T]]:
        """Make the caches of a kind and have them run; the first lists may take a while."""
        labels = f"{marks.MANAGED_BY}={self._managed_by}" if only_ours else None
        caches = [
            Cache(self.client, gvk, keep, namespace=namespace, labels=labels)
            for namespace in (self._namespaces if namespaced else (None,))
        ]
        for cache in caches:
            if subscriber is not None:
                cache.subscribe(subscriber)
            self.start(cache)
        return caches

    def start(self, cache: Cache[Any]) -> None:
        """Have a cache run."""
        self._needed.put_nowait(cache)


async def first_lists(caches: Sequence[Cache[T]]) -> None:
    """Wait for the first lists, but not for long: until then objects are read directly."""
    try:
        async with asyncio.timeout(_FIRST_LIST_SECONDS) as limit:
            for cache in caches:
                await cache.synced()
    except TimeoutError:
        if not limit.expired():
            raise
        log.error("first list takes long", kinds=sorted({str(cache.gvk) for cache in caches}))
