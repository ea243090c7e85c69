"""The permissions that a viewer needs to see an entry."""

from typing import NamedTuple, Protocol

from pergola.api.objects import GroupVersionKind, JsonObject, Key


class Place(NamedTuple):
    """A kind in a namespace, or in the whole cluster if the namespace is empty."""

    gvk: GroupVersionKind
    namespace: str


class Scope(NamedTuple):
    """An object, reduced to the facts that permissions depend on."""

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
        """The identity of the entry; a later entry with the same one replaces it."""
        ...

    @property
    def scope(self) -> Scope:
        """The object that a viewer must be allowed to read."""
        ...

    def data(self) -> JsonObject:
        """Return the entry in the page's format."""
        ...
