"""A reader's own view of a shared cache."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from pergola.api.objects import JsonObject, Key
from pergola.kube.selectors import matches, parse_selector
from pergola.runtime.caching.cache import Cache, Change, Subscriber
from pergola.runtime.caching.isolation import isolated
from pergola.runtime.caching.packed import Packed

T = TypeVar("T")


class View(Generic[T]):
    """Facts about the objects of a cache, with the interface of a cache but without a second watch.

    Args:
        keep: Returns what to store of an object; called once per state. If it raises, the previous
            facts stay.
        labels: Only the objects that this selector matches.
    """

    def __init__(
        self, cache: Cache[Packed], keep: Callable[[JsonObject], T], *, labels: str | None = None
    ) -> None:
        self.gvk = cache.gvk
        self.namespace = cache.namespace
        self._cache = cache
        self._keep = keep
        self._selector: JsonObject = {} if labels is None else parse_selector(labels)
        self._facts: dict[Key, T] = {}
        self._subscribers: list[Subscriber[T]] = []
        cache.subscribe(self._changed)

    def get(self, key: Key) -> T | None:
        """Return the facts about an object; None if it does not exist."""
        return self._facts.get(key)

    def items(self) -> Iterator[tuple[Key, T]]:
        """Yield all keys with the facts; do not hold the iterator across an await."""
        return iter(self._facts.items())

    def subscribe(self, subscriber: Subscriber[T]) -> None:
        """Call `subscriber` for each change from now on, and at once for each known object."""
        self._subscribers.append(subscriber)
        for key, facts in list(self._facts.items()):
            self._call(subscriber, Change(key, None, facts, initial=True))

    @property
    def is_synced(self) -> bool:
        """Whether reads can be trusted now."""
        return self._cache.is_synced

    @property
    def problem(self) -> str | None:
        """The reason why the watch last failed; None while it works."""
        return self._cache.problem

    async def synced(self) -> None:
        """Wait until the first list is complete."""
        await self._cache.synced()

    def _changed(self, change: Change[Packed]) -> None:
        old, new = self._facts.get(change.key), None
        if change.new is not None and matches(self._selector, change.new.labels):
            new = self._keep(change.new.unpack())
            self._facts[change.key] = new
        elif self._facts.pop(change.key, None) is None:
            return
        facts = Change(change.key, old, new, change.initial)
        for subscriber in self._subscribers:
            self._call(subscriber, facts)

    def _call(self, subscriber: Subscriber[T], change: Change[T]) -> None:
        with isolated("subscriber", self.gvk, change.key):
            subscriber(change)
