"""The source cluster: ManagedResources, and the Secrets that they read.

Only the metadata of Secrets is watched, and their content is never kept: a landscape has tens of
thousands of them. That is enough to notice when a Secret that a ManagedResource names appears or
changes.
"""

import asyncio
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from pergola.api import marks
from pergola.api.kinds import SECRET
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    finalizers_of,
    generation_of,
    labels_of,
    map_at,
    maps_at,
    metadata_of,
    resource_version_of,
    uid_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle.managed_resource import secret_names
from pergola.health.conditions import NOTHING, Reported, reported
from pergola.kube.client import Client
from pergola.resource_manager.responsibility import Responsibility
from pergola.runtime.caching.cache import Change
from pergola.runtime.caching.caches import Caches
from pergola.runtime.caching.packed import pack, unpack
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.process.sharding.ring import Assignment, Share

T = TypeVar("T")

_NONE: Final = frozenset[Key]()


@dataclass(frozen=True, slots=True)
class SeenResource:
    """The cached parts of a ManagedResource: the inputs of triggers, and the rest packed.

    Attributes:
        assignment: whether it belongs to this shard; always here without shards.
        conditions: those that fail, and the number of all.
    """

    uid: str
    version: str
    generation: int
    resource_class: str | None
    finalizers: tuple[str, ...]
    ignored: bool
    deleting: bool
    operation: str | None
    secrets: frozenset[str]
    applied: str | None
    healthy: str | None
    packed: bytes
    assignment: Assignment = Assignment.HERE
    conditions: Reported = NOTHING

    def unpack(self) -> JsonObject:
        """Return the ManagedResource, without its managed fields."""
        return unpack(self.packed)


@dataclass(frozen=True, slots=True)
class SeenSecret:
    """The cached parts of a Secret, without its content.

    Attributes:
        version: changes when the content may have changed: the resourceVersion, except that adding
            and removing our own finalizer does not count.
        resource_version: the current resourceVersion of the Secret.
    """

    uid: str
    version: str
    finalizers: tuple[str, ...]
    resource_version: str = ""
    deleting: bool = False


class Source:
    """The cluster with the ManagedResources and their Secrets.

    Args:
        namespaces: only ManagedResources in these; in all namespaces if empty.
        share: only the ManagedResources of this shard; all if None.
        unpacked: whether to keep only the inputs of triggers.

    Attributes:
        resources: the ManagedResources.
        secrets: the metadata of all Secrets.
        unit: the unit that keeps both up to date.
    """

    def __init__(
        self,
        client: Client,
        responsibility: Responsibility,
        *,
        namespaces: Collection[str] = (),
        share: Share | None = None,
        unpacked: bool = False,
    ) -> None:
        self.client = client
        self.responsibility = responsibility
        self.share = share
        self._unpacked = unpacked
        self.resources = Caches(
            client,
            MANAGED_RESOURCE,
            self._keep_resource,
            namespaces=namespaces,
            labels=share.selector if share else None,
        )
        self.secrets = Caches(
            client, SECRET, self._keep_secret, namespaces=namespaces, metadata_only=True
        )
        self._readers: dict[Key, set[Key]] = {}
        self._desired: dict[str, set[Key]] = {}
        self._changing: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
        self._same_content: dict[Key, str] = {}
        self.unit = Unit("source", caches=(*self.resources, *self.secrets))
        self.resources.subscribe(self._index)

    async def synced(self) -> None:
        """Wait until all first lists are complete."""
        await self.unit.synced()

    def resource(self, key: Key) -> SeenResource | None:
        """Return a ManagedResource as last seen."""
        return self.resources.get(key)

    def is_here(self, key: Key) -> bool:
        """Return whether this shard may work on a ManagedResource, if it still exists."""
        seen = self.resources.get(key)
        return seen is None or seen.assignment is Assignment.HERE

    def secret(self, key: Key) -> SeenSecret | None:
        """Return a Secret as last seen."""
        return self.secrets.get(key)

    def secret_count(self, namespace: str) -> int:
        """Return the number of Secrets in a namespace."""
        cache = self.secrets.reaching(namespace)
        return sum(key.namespace == namespace for key, _ in cache.items()) if cache else 0

    def desired_secrets(self, namespace: str) -> AbstractSet[Key]:
        """Return the Secrets of a namespace that ManagedResources name."""
        return self._desired.get(namespace, _NONE)

    def is_desired_here(self, secret: Key) -> bool:
        """Return whether a ManagedResource names a Secret that this instance reads."""
        seen = map(self.resource, self.readers(secret))
        return any(each is not None and self._reads(each) for each in seen)

    def _reads(self, seen: SeenResource) -> bool:
        is_active = not seen.ignored and not seen.deleting
        is_here = seen.assignment is Assignment.HERE
        return is_active and is_here and self.responsibility.is_responsible(seen.resource_class)

    def readers(self, secret: Key) -> Collection[Key]:
        """Return the ManagedResources that name a Secret."""
        return self._readers.get(secret, ())

    def observe(self, resource: JsonObject) -> None:
        """Store the result of a write to a ManagedResource."""
        self.resources.observe(resource)

    def changing(self, secret: Key) -> asyncio.Lock:
        """Return the lock to hold from reading a Secret until its new finalizers are observed."""
        return self._changing.setdefault(secret, asyncio.Lock())

    def observe_secret(self, secret: JsonObject, before: SeenSecret) -> None:
        """Store the result of a write to a Secret that changed only metadata.

        Args:
            before: the state that was written to, with its resourceVersion as the condition.
        """
        key = Key.of(secret)
        self._same_content[key] = before.version
        try:
            self.secrets.observe(secret)
        finally:
            del self._same_content[key]

    def _keep_resource(self, obj: JsonObject) -> SeenResource:
        seen = keep_resource(obj)
        if self._unpacked:
            return replace(seen, packed=b"")
        return (
            replace(seen, assignment=self.share.assignment(labels_of(obj))) if self.share else seen
        )

    def _keep_secret(self, obj: JsonObject) -> SeenSecret:
        seen = keep_secret(obj)
        version = self._same_content.get(Key.of(obj))
        return replace(seen, version=version) if version else seen

    def _index(self, change: Change[SeenResource]) -> None:
        namespace = change.key.namespace
        old = change.old.secrets if change.old else frozenset()
        new = change.new.secrets if change.new else frozenset()
        for name in old - new:
            readers = self._readers.get(Key(namespace, name), set())
            readers.discard(change.key)
            if not readers:
                del self._readers[Key(namespace, name)]
                self._desired[namespace].discard(Key(namespace, name))
        for name in new - old:
            self._desired.setdefault(namespace, set()).add(Key(namespace, name))
            self._readers.setdefault(Key(namespace, name), set()).add(change.key)
        if not self._desired.get(namespace, True):
            del self._desired[namespace]


def keep_resource(obj: JsonObject) -> SeenResource:
    """Return the facts about a ManagedResource that the cache keeps."""
    metadata_of(obj).pop("managedFields", None)
    annotations = annotations_of(obj)
    status = {c.get("type"): c.get("status") for c in maps_at(obj, "status", "conditions")}
    return SeenResource(
        uid=uid_of(obj),
        version=resource_version_of(obj),
        generation=generation_of(obj),
        resource_class=map_at(obj, "spec").get("class"),
        finalizers=tuple(finalizers_of(obj)),
        ignored=marks.is_truthy(annotations.get(marks.IGNORE)),
        deleting=deletion_timestamp_of(obj) is not None,
        operation=annotations.get(marks.OPERATION),
        secrets=frozenset(secret_names(obj)),
        applied=status.get("ResourcesApplied"),
        healthy=status.get("ResourcesHealthy"),
        packed=pack(obj),
        conditions=reported(obj),
    )


def keep_secret(obj: JsonObject) -> SeenSecret:
    """Return the facts about a Secret that the cache keeps."""
    version = resource_version_of(obj)
    return SeenSecret(
        uid=uid_of(obj),
        version=version,
        finalizers=tuple(finalizers_of(obj)),
        resource_version=version,
        deleting=deletion_timestamp_of(obj) is not None,
    )
