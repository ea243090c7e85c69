"""A record of objects that match their manifests (spec 10 B7).

Objects found equal once are recorded with a digest of the live object, so that a steady
ManagedResource costs no requests at all. The record contains every input of a merge.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pergola.api import marks
from pergola.api.objects import GroupVersionKind, JsonObject, Key, annotations_of
from pergola.resource_manager.controllers.managed_resource.merge import MergeOptions, is_scaled
from pergola.resource_manager.controllers.managed_resource.plan import Planned
from pergola.resource_manager.controllers.managed_resource.references import object_key_of
from pergola.resource_manager.origin import parse_origin
from pergola.resource_manager.target import Target
from pergola.resource_manager.target.content import content_digest


@dataclass(frozen=True, slots=True)
class _Match:
    """The manifest that a live object matched.

    Attributes:
        digest: of the live object.
        origins: the ManagedResources that have applied exactly this manifest since it last changed,
            as in origin annotations. Each took the object once; none takes it back from another.
    """

    fingerprint: bytes
    is_scaled: bool
    digest: bytes
    origins: frozenset[str]

    def is_of(self, planned: Planned, options: MergeOptions) -> bool:
        """Return whether it results from the same inputs, regardless of who applied them."""
        is_same = self.fingerprint == planned.fingerprint
        return is_same and self.is_scaled == is_scaled(planned.gvk, planned.key, options)


class Settled:
    """The objects of one target that need no request."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._matches: dict[str, _Match] = {}
        self._distrusted: set[str] = set()

    def includes(self, planned: Planned, options: MergeOptions) -> bool:
        """Return whether the watched object is known to match the manifest."""
        if not self._target.covers(planned.gvk, planned.key):
            return False
        seen = self._target.seen(planned.gvk, planned.key)
        return seen is not None and self._is_known(planned, options, seen.digest, seen.origin)

    def includes_live(self, planned: Planned, options: MergeOptions, live: JsonObject) -> bool:
        """Return whether the object, as just read, is known to match the manifest."""
        origin = annotations_of(live).get(marks.ORIGIN, "")
        return self._is_known(planned, options, content_digest(live), origin)

    def _is_known(
        self, planned: Planned, options: MergeOptions, digest: bytes, origin: str
    ) -> bool:
        match = self._reached(planned, options)
        if match is None or match.digest != digest:
            return False
        return origin == options.origin or self._is_described_by(planned, origin)

    def _is_described_by(self, planned: Planned, origin: str) -> bool:
        """Return whether the ManagedResource of an origin, which is one of `origins`, remains."""
        other = parse_origin(origin)
        describing = self._target.describers.of(planned.object_key)
        return other is not None and Key(other.namespace, other.name) in describing

    def is_left_to_other(self, planned: Planned, options: MergeOptions, origin: str) -> bool:
        """Return whether an object that was taken once now belongs to another that describes it.

        The watch may deliver the other one's write before its response is remembered.
        """
        is_others = origin != options.origin and self._is_described_by(planned, origin)
        return is_others and self.was_reached(planned, options)

    def was_reached(self, planned: Planned, options: MergeOptions) -> bool:
        """Return whether the object once matched this exact manifest, and so has drifted."""
        return self._reached(planned, options) is not None

    def _reached(self, planned: Planned, options: MergeOptions) -> _Match | None:
        match = self._matches.get(planned.object_key)
        if match is None or options.origin not in match.origins:
            return None
        return match if match.is_of(planned, options) else None

    def is_expected(self, gvk: GroupVersionKind, key: Key, digest: bytes) -> bool:
        """Return whether an object with this digest is as this process last found or left it."""
        match = self._matches.get(object_key_of(gvk, key))
        return match is not None and match.digest == digest

    def remember(self, planned: Planned, options: MergeOptions, live: JsonObject) -> None:
        """Record that the live object matches the manifest."""
        self._distrusted.discard(planned.object_key)
        before = self._matches.get(planned.object_key)
        others = before.origins if before and before.is_of(planned, options) else frozenset[str]()
        self._matches[planned.object_key] = _Match(
            planned.fingerprint,
            is_scaled(planned.gvk, planned.key, options),
            content_digest(live),
            others | {options.origin},
        )
        self._target.observe(live)

    def leave(self, origin: str, object_keys: Iterable[str]) -> None:
        """Forget that a ManagedResource applied objects; forget those that no other applied."""
        for object_key in object_keys:
            match = self._matches.get(object_key)
            if match is not None and (others := match.origins - {origin}):
                self._matches[object_key] = replace(match, origins=others)
            else:
                self.forget((object_key,))

    def forget(self, object_keys: Iterable[str]) -> None:
        """Forget objects, for example because they no longer exist."""
        for object_key in object_keys:
            self._matches.pop(object_key, None)
            self._distrusted.discard(object_key)

    def distrust(self, object_keys: Iterable[str]) -> None:
        """Make the next run read the objects from the server, regardless of the watch."""
        keys = list(object_keys)
        self.forget(keys)
        self._distrusted.update(keys)

    def is_distrusted(self, planned: Planned) -> bool:
        """Return whether the object must next be read from the server."""
        return planned.object_key in self._distrusted
