"""The Secrets and ConfigMaps that can be referenced, with the facts that their protection needs."""

from collections.abc import Iterator, Mapping

from pergola.api import marks
from pergola.api.objects import JsonObject, finalizers_of
from pergola.controllers.references.fields import Identity
from pergola.runtime.caching.cache import Cache
from pergola.runtime.caching.packed import Packed
from pergola.runtime.caching.view import View


class NamedObjects:
    """The objects by kind and key, and which of them have the finalizer.

    Args:
        caches: By kind, `Secret` and `ConfigMap`; metadata is enough.

    Attributes:
        kinds: Whether each object has the finalizer.
    """

    def __init__(self, caches: Mapping[str, Cache[Packed]]) -> None:
        self.kinds = {kind: View(cache, is_protected) for kind, cache in caches.items()}

    def exists(self, identity: Identity) -> bool:
        """Return whether an object exists."""
        kind, key = identity
        return self.kinds[kind].get(key) is not None

    def is_protected(self, identity: Identity) -> bool:
        """Return whether an object exists and has the finalizer."""
        kind, key = identity
        return self.kinds[kind].get(key) is True

    def protected(self) -> Iterator[Identity]:
        """Yield the objects that have the finalizer; do not await during the iteration."""
        for kind, objects in self.kinds.items():
            yield from ((kind, key) for key, is_protected in objects.items() if is_protected)

    async def synced(self) -> None:
        """Wait until all of them are known."""
        for objects in self.kinds.values():
            await objects.synced()


def is_protected(obj: JsonObject) -> bool:
    """Return whether an object has the finalizer."""
    return marks.REFERENCE_PROTECTION in finalizers_of(obj)
