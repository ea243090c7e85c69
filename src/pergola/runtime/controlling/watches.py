"""Triggers of a controller, as data: its sources, the events that matter, and the keys to run.

```python
watches=[
    Watch(widgets),  # the object itself
    Watch(gadgets, to=owners, when=changed),  # the keys that an event maps to
]
```
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from pergola.api.objects import GroupVersionKind, JsonObject, Key, owner_references_of
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.caches import Caches
from pergola.runtime.controlling.queue import Queue

E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)
K = TypeVar("K")


class Source(Protocol[E_co]):
    """A source of events: one cache, several, or `Events`."""

    def subscribe(self, subscriber: Callable[[E_co], None], /) -> None:
        """Call `subscriber` for each event, and at once for each known object."""
        ...


class Events(Generic[E]):
    """A source of events other than a cache."""

    def __init__(self) -> None:
        self._subscribers: list[Callable[[E], None]] = []

    def subscribe(self, subscriber: Callable[[E], None], /) -> None:
        """Call `subscriber` for each future event."""
        self._subscribers.append(subscriber)

    def notify(self, event: E) -> None:
        """Pass an event to all subscribers."""
        for subscriber in self._subscribers:
            subscriber(event)


def owners(
    gvk: GroupVersionKind, *, namespaced: bool = True
) -> Callable[[Change[JsonObject]], list[Key]]:
    """Return a function that maps a change to the owners of a kind, in any version.

    The cache must keep whole objects, or their metadata. The owners are those before and after the
    change.

    Args:
        namespaced: whether the owners are in the namespace of the object.
    """

    def keys(change: Change[JsonObject]) -> list[Key]:
        references = (
            each for obj in (change.old, change.new) if obj for each in owner_references_of(obj)
        )
        names = {
            name_in(each)
            for each in references
            if GroupVersionKind.of(each).group_kind == gvk.group_kind
        }
        namespace = change.key.namespace if namespaced else ""
        return [Key(namespace, name) for name in sorted(filter(None, names))]

    def name_in(reference: JsonObject) -> str:
        name = reference.get("name")
        return name if isinstance(name, str) else ""

    return keys


def always(_: object) -> bool:
    """Accept every event."""
    return True


def exists(change: Change[Any]) -> bool:
    """Accept events of objects that exist: everything but deletions."""
    return change.new is not None


def gone(change: Change[Any]) -> bool:
    """Accept deletions."""
    return change.new is None


def changed(change: Change[Any]) -> bool:
    """Accept events that change the part of an object that the cache keeps."""
    return bool(change.old != change.new)


def later(change: Change[Any]) -> bool:
    """Accept events after the initial list."""
    return not change.initial


def all_of(*predicates: Callable[[E], bool]) -> Callable[[E], bool]:
    """Return a predicate that accepts an event if all given predicates do."""
    return lambda event: all(predicate(event) for predicate in predicates)


def one_key(key: K) -> Callable[[object], Iterable[K]]:
    """Return a function that maps every event to the same key."""
    return lambda _: (key,)


def _itself(change: Change[Any]) -> tuple[Any, ...]:
    return (change.key,)


_ITSELF: Final = cast("Callable[[Any], Iterable[Any]]", _itself)


@dataclass(frozen=True)
class Watch(Generic[E, K]):
    """One source of events of a controller.

    Attributes:
        to: maps an event to the keys that it triggers; the object's own key by default.
        when: whether an event matters; checked before `to`.
    """

    source: Source[E]
    to: Callable[[E], Iterable[K]] = _ITSELF
    when: Callable[[E], bool] = always

    @property
    def caches(self) -> tuple[Cache[Any], ...]:
        """The caches of the source, if any."""
        source: object = self.source
        if isinstance(source, Cache):
            return (source,)
        return tuple(source) if isinstance(source, Caches) else ()

    def trigger(self, queue: Queue[K]) -> None:
        """Add a key to the queue for each event from now on."""

        def on_event(event: E) -> None:
            if self.when(event):
                for key in self.to(event):
                    queue.add(key)

        self.source.subscribe(on_event)
