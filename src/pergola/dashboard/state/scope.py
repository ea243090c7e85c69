"""What a viewer has to be allowed to read in order to see an entry."""

from typing import NamedTuple, Protocol

from pergola.api.objects import GroupVersionKind, JsonObject, Key


class Place(NamedTuple):
    """A kind in a namespace; in the whole cluster if it is empty."""

    gvk: GroupVersionKind
    namespace: str


class Scope(NamedTuple):
    """One object, as far as permissions are concerned."""

    gvk: GroupVersionKind
    key: Key

    @property
    def place(self) -> Place:
        """The place whose list shows the object."""
        return Place(self.gvk, self.key.namespace)


class Item(Protocol):
    """An entry of the feed."""

    @property
    def id(self) -> str:
        """The identity of the entry; a later one replaces an earlier one."""
        ...

    @property
    def scope(self) -> Scope:
        """What a viewer has to be allowed to read."""
        ...

    def data(self) -> JsonObject:
        """Return the entry as the page reads it."""
        ...
