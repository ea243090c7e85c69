"""Which ManagedResources describe which objects, to notice when several describe the same one."""

from collections.abc import Iterable

from pergola.api.objects import Key
from pergola.runtime.controlling.watches import Events


class Describers:
    """The ManagedResources of this process by the objects that they describe.

    Attributes:
        contended: the ManagedResources that now share an object with another one, or no longer do.
    """

    def __init__(self) -> None:
        self.contended: Events[Key] = Events()
        self._objects: dict[Key, frozenset[str]] = {}
        self._by_object: dict[str, tuple[Key, ...]] = {}

    def of(self, object_key: str) -> tuple[Key, ...]:
        """Return the ManagedResources that describe an object."""
        return self._by_object.get(object_key, ())

    def knows(self, resource: Key) -> bool:
        """Return whether a ManagedResource has run, so that what it describes is known."""
        return resource in self._objects

    def described(self, resource: Key) -> frozenset[str]:
        """Return the objects that a ManagedResource describes, as far as it is known."""
        return self._objects.get(resource, frozenset())

    def set(self, resource: Key, object_keys: Iterable[str]) -> None:
        """Record which objects a ManagedResource describes."""
        now = frozenset(object_keys)
        before = self._objects.get(resource, frozenset())
        self._objects[resource] = now
        if before != now:
            self._change(resource, before, now)

    def drop(self, resource: Key) -> None:
        """Record that a ManagedResource describes nothing, because it is gone, going or ignored."""
        if before := self._objects.pop(resource, None):
            self._change(resource, before, frozenset())

    def _change(self, resource: Key, before: frozenset[str], now: frozenset[str]) -> None:
        others: set[Key] = set()
        for object_key in before ^ now:
            rest = [key for key in self.of(object_key) if key != resource]
            others.update(rest)
            describing = (*rest, resource) if object_key in now else tuple(rest)
            if describing:
                self._by_object[object_key] = describing
            else:
                self._by_object.pop(object_key, None)
        for other in others:
            self.contended.notify(other)
