"""A record of objects that match their manifests (spec 10 B7).

Objects found equal once are recorded with a digest of the live object, so that a steady
ManagedResource costs no requests at all.
"""

from collections.abc import Iterable

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.resource_manager.controllers.managed_resource.plan import Planned
from pergola.resource_manager.controllers.managed_resource.references import object_key_of
from pergola.resource_manager.target import Target
from pergola.resource_manager.target.content import content_digest


class Settled:
    """The objects of one target that need no request."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._digests: dict[str, tuple[bytes, bytes]] = {}
        self._distrusted: set[str] = set()

    def includes(self, planned: Planned) -> bool:
        """Return whether the live object is known to match the manifest."""
        known = self._digests.get(planned.object_key)
        if known is None or known[0] != planned.fingerprint:
            return False
        if not self._target.covers(planned.gvk, planned.key):
            return False
        seen = self._target.seen(planned.gvk, planned.key)
        return seen is not None and seen.digest == known[1]

    def was_reached(self, planned: Planned) -> bool:
        """Return whether the object once matched this exact manifest, and so has drifted."""
        known = self._digests.get(planned.object_key)
        return known is not None and known[0] == planned.fingerprint

    def is_expected(self, gvk: GroupVersionKind, key: Key, digest: bytes) -> bool:
        """Return whether an object with this digest is as this process last found or left it."""
        known = self._digests.get(object_key_of(gvk, key))
        return known is not None and known[1] == digest

    def remember(self, planned: Planned, live: JsonObject) -> None:
        """Record that the live object matches the manifest."""
        self._distrusted.discard(planned.object_key)
        self._digests[planned.object_key] = (planned.fingerprint, content_digest(live))
        self._target.observe(live)

    def forget(self, object_keys: Iterable[str]) -> None:
        """Forget objects that are no longer managed."""
        for object_key in object_keys:
            self._digests.pop(object_key, None)
            self._distrusted.discard(object_key)

    def distrust(self, object_keys: Iterable[str]) -> None:
        """Make the next run read the objects from the server, regardless of the watch."""
        keys = list(object_keys)
        self.forget(keys)
        self._distrusted.update(keys)

    def is_distrusted(self, planned: Planned) -> bool:
        """Return whether the object must next be read from the server."""
        return planned.object_key in self._distrusted
