"""Indexes for looking up the objects of a cache by a value."""

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Generic, Protocol, TypeVar

from pergola.api.objects import Key
from pergola.runtime.caching.cache import Change, Subscriber

T = TypeVar("T")
V = TypeVar("V", bound=Hashable)


class Subscribable(Protocol[T]):
    """A single cache, or several."""

    def subscribe(self, subscriber: Subscriber[T]) -> None:
        """Call `subscriber` for each change, and at once for each known object."""
        ...


class Index(Generic[T, V]):
    """The keys of a cache's objects by values derived from them.

    The index is up to date before it notifies any subscriber that subscribed after its creation.

    Args:
        values_of: the values under which an object is found; called once per state of an object.
    """

    def __init__(self, cache: Subscribable[T], values_of: Callable[[Key, T], Iterable[V]]) -> None:
        self._values_of = values_of
        self._keys: dict[V, set[Key]] = {}
        self._values: dict[Key, frozenset[V]] = {}
        cache.subscribe(self._changed)

    def keys(self, value: V) -> Collection[Key]:
        """Return the objects that have a value; do not hold the result across an await."""
        return self._keys.get(value, ())

    def values(self) -> Collection[V]:
        """Return the values of all objects; do not hold the result across an await."""
        return self._keys.keys()

    def __contains__(self, value: object) -> bool:
        return value in self._keys

    def _changed(self, change: Change[T]) -> None:
        key = change.key
        old = self._values.pop(key, frozenset())
        new = frozenset(self._values_of(key, change.new)) if change.new is not None else frozenset()
        if new:
            self._values[key] = new
        for value in old - new:
            keys = self._keys[value]
            keys.discard(key)
            if not keys:
                del self._keys[value]
        for value in new - old:
            self._keys.setdefault(value, set()).add(key)
