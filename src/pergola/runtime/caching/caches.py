"""The objects of a kind in several namespaces, read as one cache (spec 11 §0.1).

An instance that is restricted to some namespaces may list and watch only there, so each namespace
needs its own watch.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Generic, TypeVar

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Subscriber

T = TypeVar("T")


class Caches(Generic[T]):
    """The caches of a kind, one per namespace.

    Args:
        keep: what to store of an object, as for `Cache`.
        namespaces: only these; if empty, one cache for all namespaces.
    """

    def __init__(
        self,
        client: Client,
        gvk: GroupVersionKind,
        keep: Callable[[JsonObject], T],
        *,
        namespaces: Collection[str] = (),
        labels: str | None = None,
        fields: str | None = None,
        metadata_only: bool = False,
    ) -> None:
        self.gvk = gvk
        everywhere: list[str | None] = [None]
        self._caches = {
            namespace: Cache(
                client,
                gvk,
                keep,
                namespace=namespace,
                labels=labels,
                fields=fields,
                metadata_only=metadata_only,
            )
            for namespace in sorted(set(namespaces)) or everywhere
        }

    def __iter__(self) -> Iterator[Cache[T]]:
        return iter(self._caches.values())

    def __len__(self) -> int:
        return sum(map(len, self._caches.values()))

    def __bool__(self) -> bool:
        # Always true, so that `caches or other` also works with empty caches.
        return True

    def get(self, key: Key) -> T | None:
        """Return the kept facts about an object, or None if it does not exist or is not watched."""
        cache = self.reaching(key.namespace)
        return cache.get(key) if cache else None

    def items(self) -> Iterator[tuple[Key, T]]:
        """Yield all keys with the kept facts; do not hold the iterator across an await."""
        for cache in self:
            yield from cache.items()

    def reaching(self, namespace: str) -> Cache[T] | None:
        """Return the cache that covers a namespace: the one for all namespaces, or its own."""
        return self._caches.get(None) or self._caches.get(namespace)

    def covers(self, namespace: str) -> bool:
        """Return whether a namespace is watched; elsewhere `get` returns None for every object."""
        return self.reaching(namespace) is not None

    @property
    def is_synced(self) -> bool:
        """Whether reads can be trusted now, in all namespaces."""
        return all(cache.is_synced for cache in self)

    def subscribe(self, subscriber: Subscriber[T]) -> None:
        """Call `subscriber` for each change from now on, and at once for each known object."""
        for cache in self:
            cache.subscribe(subscriber)

    def observe(self, obj: JsonObject) -> None:
        """Store an object that a write returned, so that the next read sees the write."""
        cache = self.reaching(Key.of(obj).namespace)
        if cache:
            cache.observe(obj)
