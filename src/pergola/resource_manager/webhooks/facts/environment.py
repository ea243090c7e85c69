"""The handler's reads, from caches, so that no review waits (Beyond 2)."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

import orjson

from pergola.api.kinds import HPA, HVPA, NAMESPACE, NODE
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    map_at,
)
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind
from pergola.resource_manager.webhooks.facts.high_availability import (
    CONSIDER,
    NamespaceSettings,
    Version,
    read_namespace,
)
from pergola.runtime.caching.cache import Cache
from pergola.runtime.caching.caches import Caches
from pergola.runtime.caching.index import Index
from pergola.runtime.controlling.unit import Watching


class Scaled(NamedTuple):
    """The target and the maximum of an autoscaler."""

    api_version: str
    kind: str
    name: str
    most: int


class ClusterEnvironment:
    """The reads from one cluster; unless `caches` run, everything is read live.

    Args:
        considered: a selector for the namespaces to watch. The webhook's registration may select
            others.
        watched: the namespaces in which autoscalers are watched; all if empty.

    Attributes:
        namespaces: those that match `considered`.
        autoscalers: HorizontalPodAutoscalers and, if they are served, Hvpas that deploy one.
        nodes: only their names.
    """

    def __init__(
        self,
        client: Client,
        *,
        considered: str = f"{CONSIDER}=true",
        watched: Collection[str] = (),
    ) -> None:
        self._client = client
        self.namespaces = Cache(
            client,
            NAMESPACE,
            lambda obj: read_namespace(annotations_of(obj)),
            labels=considered,
            metadata_only=True,
        )
        self.nodes = Cache(client, NODE, lambda _: None, metadata_only=True)
        self.autoscalers = (
            Caches(client, HPA, scaled_by_hpa, namespaces=watched),
            Caches(client, HVPA, scaled_by_hvpa, namespaces=watched),
        )
        self._by_target = [Index(cache, _targets) for cache in self.autoscalers]
        self.caches: tuple[Watching, ...] = (
            self.namespaces,
            self.nodes,
            *(cache for caches in self.autoscalers for cache in caches),
        )

    async def synced(self) -> None:
        """Wait until all caches are synced."""
        for cache in self.caches:
            await cache.synced()

    async def namespace(self, name: str) -> NamespaceSettings:
        """Read from the cache, or live if it is missing there: the label may be new."""
        known = self.namespaces.get(Key("", name)) if self.namespaces.is_synced else None
        if known is not None:
            return known
        obj = await self._client.get(NAMESPACE, Key("", name), metadata_only=True)
        return read_namespace(annotations_of(obj))

    async def most_replicas(self, workload: GroupVersionKind, key: Key) -> int | None:
        """Return the maximum of the first autoscaler; an Hvpa counts only without another one."""
        target = (key.namespace, workload.api_version, workload.kind, key.name)
        for caches, index in zip(self.autoscalers, self._by_target, strict=True):
            cache = caches.reaching(key.namespace)
            if cache is not None and cache.is_synced:
                found = [s for k in index.keys(target) if (s := cache.get(k)) is not None]
            else:
                found = await self._listed(caches.gvk, target)
            if found:
                return min(found).most
        return None

    async def many_nodes(self) -> bool:
        """Return whether there is more than one node."""
        if self.nodes.is_synced:
            return len(self.nodes) > 1
        return len(await self._client.list(NODE, metadata_only=True)) > 1

    async def _listed(
        self, gvk: GroupVersionKind, target: tuple[str, str, str, str]
    ) -> list[Scaled]:
        namespace, *names = target
        try:
            objects = await self._client.list(gvk, namespace)
        except UnknownKind:
            return []
        read = scaled_by_hpa if gvk == HPA else scaled_by_hvpa
        return [s for s in map(read, objects) if s is not None and [*s[:3]] == names]


def scaled_by_hpa(obj: JsonObject) -> Scaled | None:
    """Return the target of a HorizontalPodAutoscaler."""
    spec = map_at(obj, "spec")
    return _scaled(map_at(spec, "scaleTargetRef"), spec.get("maxReplicas"))


def scaled_by_hvpa(obj: JsonObject) -> Scaled | None:
    """Return the target that an Hvpa scales horizontally."""
    if map_at(obj, "spec", "hpa").get("deploy") is not True:
        return None
    most = map_at(obj, "spec", "hpa", "template", "spec").get("maxReplicas")
    return _scaled(map_at(obj, "spec", "targetRef"), most)


async def version_of(client: Client) -> Version | None:
    """Return the Kubernetes version of an API server, or None if it is not in the usual format."""
    try:
        answer = orjson.loads(await client.get_raw("/version"))
        return int(answer["major"]), int(str(answer["minor"]).rstrip("+"))
    except (ValueError, KeyError, TypeError):
        return None


async def serves_hvpas(client: Client) -> bool:
    """Return whether an API server serves Hvpas; few do."""
    try:
        await client.resource(HVPA)
    except UnknownKind:
        return False
    return True


def _scaled(reference: JsonObject, most: object) -> Scaled | None:
    names = [reference.get(name) for name in ("apiVersion", "kind", "name")]
    if not isinstance(most, int) or not all(isinstance(name, str) for name in names):
        return None
    return Scaled(str(names[0]), str(names[1]), str(names[2]), most)


def _targets(key: Key, scaled: Scaled | None) -> Iterable[tuple[str, str, str, str]]:
    return [] if scaled is None else [(key.namespace, *scaled[:3])]
