"""The desired objects of a ManagedResource, decoded from its Secrets once and kept packed.

A plan stays valid as long as the ManagedResource's generation and the resourceVersions of its
Secrets are unchanged. With it, a periodic run or the repair of a single object needs no Secret.
"""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final

import orjson

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.runtime.caching.packed import unpack

_PLANS_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Planned:
    """One desired object.

    Attributes:
        recorded: the reference to put into the status, as JSON.
        fingerprint: changes with any input that the live object should follow.
        packed: the manifest.
        previous: the object's reference from the previous status, or None.
    """

    gvk: GroupVersionKind
    key: Key
    object_key: str
    recorded: bytes
    fingerprint: bytes
    packed: bytes
    previous: JsonObject | None = None

    def manifest(self) -> JsonObject:
        """Return a new copy of the manifest."""
        return unpack(self.packed)

    @property
    def reference(self) -> JsonObject:
        """A new copy of the reference for the status."""
        ref: JsonObject = orjson.loads(self.recorded)
        return ref

    def after(self, previous: JsonObject | None) -> "Planned":
        """Return the object with its previous reference."""
        return replace(self, previous=previous)


def fingerprint(packed: bytes, recorded: bytes, flags: tuple[bool, ...]) -> bytes:
    """Hash a manifest, its reference with the values injected into it, and its merge options."""
    digest = hashlib.blake2b(packed, digest_size=16)
    digest.update(recorded + bytes(flags))
    return digest.digest()


@dataclass(frozen=True, slots=True)
class Plan:
    """All desired objects of a ManagedResource.

    Attributes:
        basis: the versions it was made from; another basis requires another plan.
        objects: the objects to apply, in the order of the Secrets.
        released: references of objects in mode `Ignore`.
        errors: documents that could not be decoded, one sentence each.
        unknown: the kinds that the target does not serve; once it does, the plan is outdated.
        size: the approximate size of the plan in bytes.
    """

    basis: tuple[object, ...]
    objects: tuple[Planned, ...]
    released: tuple[JsonObject, ...]
    errors: tuple[str, ...]
    checksum: str
    unknown: frozenset[GroupVersionKind] = frozenset()
    size: int = 0


class Plans:
    """The latest plan of each ManagedResource, within a memory limit."""

    def __init__(self, limit: int = _PLANS_BYTES) -> None:
        self._limit = limit
        self._plans: OrderedDict[Key, Plan] = OrderedDict()
        self._size = 0

    def get(self, key: Key, basis: tuple[object, ...]) -> Plan | None:
        """Return the plan made from exactly `basis`."""
        plan = self._plans.get(key)
        if plan is None or plan.basis != basis:
            return None
        self._plans.move_to_end(key)
        return plan

    def put(self, key: Key, plan: Plan) -> None:
        """Store a plan, evicting the least recently used ones if necessary."""
        self.drop(key)
        self._plans[key] = plan
        self._size += plan.size
        while self._size > self._limit and len(self._plans) > 1:
            self.drop(next(iter(self._plans)))

    def drop(self, key: Key) -> None:
        """Drop the plan of a ManagedResource."""
        plan = self._plans.pop(key, None)
        if plan is not None:
            self._size -= plan.size
