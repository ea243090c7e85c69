"""The target cluster as the controllers see it: watches that start when a kind is first needed.

A watch covers only what carries our `managed-by` label, so that a namespace list is never needed
and a large cluster costs no memory (spec 10 B8). Of each object it keeps what the controllers ask
for again and again: where it comes from, a digest of what could be reverted, whether it is healthy
and rolled out. The object itself is kept as packed bytes, unless it is large or a Secret.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from pergola.api import marks
from pergola.api.kinds import CRD, POD, SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    labels_of,
    map_at,
    maps_at,
    metadata_of,
    namespace_of,
    owner_references_of,
    resource_version_of,
    uid_of,
)
from pergola.health import check, progressing
from pergola.kube.client import Client
from pergola.kube.errors import InvalidKey, NotFound, UnknownKind
from pergola.kube.selectors import format_selector
from pergola.resource_manager.controllers.managed_resource.compare import content_digest
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.controlling.unit import Unsynced, unsynced
from pergola.runtime.controlling.watches import Events
from pergola.runtime.logging import get_logger

log = get_logger("target")
T = TypeVar("T")

HPA: Final = GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler")
_PACKED_AT_MOST: Final = 16 * 1024
_FIRST_LIST_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Observed:
    """What is kept of a managed object.

    Attributes:
        digest: changes exactly when somebody edits what a reconciliation could revert.
        problem: why the object is unhealthy, or None.
        rollout: why the object is still progressing, or None.
        packed: the object as JSON without its managed fields, if it is small and no Secret.
    """

    uid: str
    version: str
    origin: str
    digest: bytes
    problem: str | None
    rollout: str | None
    deleting: bool
    packed: bytes | None

    def unpack(self) -> JsonObject | None:
        """The object, as far as it was kept."""
        obj: JsonObject | None = orjson.loads(self.packed) if self.packed else None
        return obj


class TargetChange(NamedTuple):
    """A managed object appeared, changed or went."""

    gvk: GroupVersionKind
    change: Change[Observed]


@dataclass(frozen=True, slots=True)
class PodSeen:
    """What the count of a Deployment's pods needs to know of a pod."""

    pod: JsonObject


class Target:
    """The cluster in which the described objects live.

    Args:
        managed_by: the value of the `managed-by` label that marks our objects.
        namespaces: watch namespaced kinds only there; everywhere if empty. Objects elsewhere are
            read directly.

    Attributes:
        objects: what changes of managed objects of watched kinds.
        pods: what changes of managed pods.
    """

    name = "target"
    is_idle = True

    def __init__(
        self, client: Client, *, managed_by: str, namespaces: Collection[str] = ()
    ) -> None:
        self.client = client
        self.objects: Events[TargetChange] = Events()
        self.pods: Events[Change[PodSeen]] = Events()
        self._needed: asyncio.Queue[Cache[Any]] = asyncio.Queue()
        self._labels = f"{marks.MANAGED_BY}={managed_by}"
        self._namespaces: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._kinds: dict[GroupVersionKind, list[Cache[Observed]]] = {}
        self._hpas: list[Cache[JsonObject]] = []
        self._pods: list[Cache[PodSeen]] = []
        self._crds: Cache[str] | None = None

    async def run(self) -> None:
        """Keep watches up to date as they are needed, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                cache = await self._needed.get()
                group.create_task(cache.run(), name=f"watch {cache.gvk}")

    async def synced(self) -> None:
        """Return at once: nothing is watched before a controller needs it."""

    def caches(self) -> Iterator[Cache[Observed]]:
        """All watches of managed kinds."""
        for caches in self._kinds.values():
            yield from caches

    @property
    def unsynced(self) -> list[Unsynced]:
        """The watches that are not live, each with the reason."""
        return unsynced(self.caches())

    # Reading

    async def watch(self, gvk: GroupVersionKind) -> None:
        """Starts to watch the kind, if nobody did yet, and waits a moment for the first list."""
        if gvk in self._kinds:
            return
        if not gvk.kind or not gvk.version:
            return
        try:
            resource = await self.client.resource(gvk)
        except UnknownKind:
            self._follow_crds()
            raise
        if gvk in self._kinds:
            return
        namespaces = self._namespaces if resource.namespaced else (None,)
        keep = _keeper(gvk)
        self._kinds[gvk] = [
            Cache(self.client, gvk, keep, namespace=namespace, labels=self._labels)
            for namespace in namespaces
        ]
        for cache in self._kinds[gvk]:
            cache.subscribe(self._announced(gvk))
            self._needed.put_nowait(cache)
        await _first_lists(self._kinds[gvk])

    def seen(self, gvk: GroupVersionKind, key: Key) -> Observed | None:
        """What the watch of the kind knows of the object; None says nothing without `covers`."""
        for cache in self._kinds.get(gvk, ()):
            found = cache.get(key)
            if found is not None:
                return found
        return None

    def covers(self, gvk: GroupVersionKind, key: Key) -> bool:
        """Whether the watch of the kind is live and would know the object, if it is labelled."""
        return any(
            cache.is_synced and cache.served and cache.namespace in (None, key.namespace)
            for cache in self._kinds.get(gvk, ())
        )

    def unserved(self, gvk: GroupVersionKind) -> bool:
        """Whether the kind was watched once and is not served any more."""
        caches = self._kinds.get(gvk, [])
        return bool(caches) and all(cache.served is False for cache in caches)

    async def live(self, gvk: GroupVersionKind, key: Key) -> JsonObject | None:
        """Read the object from the server; None if it does not exist, or cannot."""
        try:
            return await self.client.get(gvk, key)
        except (InvalidKey, NotFound, UnknownKind):
            return None

    def observe(self, obj: JsonObject) -> None:
        """Takes in what a write returned, so that the next read sees that write."""
        gvk = GroupVersionKind.of(obj)
        if self._labels != f"{marks.MANAGED_BY}={labels_of(obj).get(marks.MANAGED_BY)}":
            return
        for cache in self._kinds.get(gvk, ()):
            if cache.namespace in (None, namespace_of(obj)):
                cache.observe(obj)

    async def autoscalers(self, namespaces: Collection[str]) -> list[JsonObject]:
        """At least the HorizontalPodAutoscalers of some namespaces, with their scale targets.

        They are watched, or asked for where the watches do not reach.
        """
        if not self._hpas:
            self._hpas = [
                Cache(self.client, HPA, _keep_scale_target, namespace=namespace)
                for namespace in self._namespaces
            ]
            for cache in self._hpas:
                self._needed.put_nowait(cache)
            await _first_lists(self._hpas)
        found = [hpa for cache in self._hpas for _, hpa in cache.items()]
        for namespace in namespaces:
            if not self._reaches(namespace):
                found += await self.client.list(HPA, namespace)
        return found

    async def pods_of(self, workload: JsonObject) -> list[JsonObject]:
        """At least the pods of a workload, reduced to what counting them needs.

        Pods of a template that carries our label are watched, as far as the watches reach; others
        are asked for.
        """
        namespace = namespace_of(workload)
        template = map_at(workload, "spec", "template")
        labelled = self._labels == f"{marks.MANAGED_BY}={labels_of(template).get(marks.MANAGED_BY)}"
        if not labelled or not self._reaches(namespace):
            selector = format_selector(map_at(workload, "spec", "selector"))
            return await self.client.list(POD, namespace, labels=selector)
        if not self._pods:
            self._pods = [
                Cache(self.client, POD, _keep_pod, namespace=ns, labels=self._labels)
                for ns in self._namespaces
            ]
            for cache in self._pods:
                cache.subscribe(self.pods.notify)
                self._needed.put_nowait(cache)
            await _first_lists(self._pods)
        return [
            seen.pod
            for cache in self._pods
            for key, seen in cache.items()
            if key.namespace == namespace
        ]

    def _reaches(self, namespace: str) -> bool:
        """Whether the watches of namespaced kinds look into a namespace."""
        return self._namespaces == (None,) or namespace in self._namespaces

    # Kinds that come and go

    def _follow_crds(self) -> None:
        """Watches CRDs from the moment at which a kind was missing, to notice when it appears."""
        if self._crds is None:
            self._crds = Cache(self.client, CRD, resource_version_of, metadata_only=True)
            self._crds.subscribe(self._crd_changed)
            self._needed.put_nowait(self._crds)

    def _crd_changed(self, change: Change[str]) -> None:
        group = change.key.name.partition(".")[2]
        for gvk, caches in self._kinds.items():
            if gvk.group == group:
                self.client.discovery.forget(gvk)
                for cache in caches:
                    cache.wake()

    def _announced(self, gvk: GroupVersionKind) -> Callable[[Change[Observed]], None]:
        return lambda change: self.objects.notify(TargetChange(gvk, change))


async def _first_lists(caches: Sequence[Cache[T]]) -> None:
    """Waits for the first lists, but not for long: until then objects are read directly."""
    try:
        async with asyncio.timeout(_FIRST_LIST_SECONDS):
            for cache in caches:
                await cache.synced()
    except TimeoutError:
        log.error("first list takes long", kinds=sorted({str(cache.gvk) for cache in caches}))


def _keeper(gvk: GroupVersionKind) -> Callable[[JsonObject], Observed]:
    packs = gvk.group_kind != SECRET.group_kind

    def keep(obj: JsonObject) -> Observed:
        metadata_of(obj).pop("managedFields", None)
        packed = orjson.dumps(obj) if packs else None
        return Observed(
            uid=uid_of(obj),
            version=resource_version_of(obj),
            origin=annotations_of(obj).get(marks.ORIGIN, ""),
            digest=content_digest(obj),
            problem=check(obj),
            rollout=progressing(obj),
            deleting=deletion_timestamp_of(obj) is not None,
            packed=packed if packed is not None and len(packed) <= _PACKED_AT_MOST else None,
        )

    return keep


def _keep_scale_target(obj: JsonObject) -> JsonObject:
    spec = obj.get("spec") if isinstance(obj.get("spec"), dict) else {}
    return {
        "apiVersion": obj.get("apiVersion"),
        "kind": obj.get("kind"),
        "metadata": {"name": Key.of(obj).name, "namespace": namespace_of(obj)},
        "spec": {"scaleTargetRef": spec.get("scaleTargetRef")} if spec else {},
    }


def _keep_pod(obj: JsonObject) -> PodSeen:
    status = obj.get("status") if isinstance(obj.get("status"), dict) else {}
    return PodSeen(
        {
            "metadata": {
                "name": Key.of(obj).name,
                "namespace": namespace_of(obj),
                "labels": labels_of(obj),
                "ownerReferences": owner_references_of(obj),
                "deletionTimestamp": deletion_timestamp_of(obj),
            },
            "status": {
                "phase": status.get("phase") if status else None,
                "reason": status.get("reason") if status else None,
                "conditions": maps_at(obj, "status", "conditions"),
            },
        }
    )
