"""The ManagedResource controller on clusters in memory, with watches that are never late."""

import base64
import copy
from collections.abc import AsyncGenerator, Collection, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final, cast

import orjson
from prometheus_client import CollectorRegistry

from conformance.clusters import Cluster
from pergola.api import marks
from pergola.api.kinds import SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, labels_of, maps_at, uid_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.errors import KubeError
from pergola.resource_manager.controllers.managed_resource.apply import Applier
from pergola.resource_manager.controllers.managed_resource.completions import Completions
from pergola.resource_manager.controllers.managed_resource.fights import FightLimit
from pergola.resource_manager.controllers.managed_resource.own_writes import Refusals
from pergola.resource_manager.controllers.managed_resource.planning import Planner
from pergola.resource_manager.controllers.managed_resource.prune import Pruner
from pergola.resource_manager.controllers.managed_resource.reconcile import (
    ManagedResources,
    Settings,
)
from pergola.resource_manager.responsibility import DEFAULT_CLASS, Responsibility
from pergola.resource_manager.source import Source
from pergola.resource_manager.target import Target
from pergola.resource_manager.target.autoscalers import HPA
from pergola.resource_manager.target.describers import Describers
from pergola.resource_manager.target.observed import Observed, keeper
from pergola.runtime.clock import FakeClock
from pergola.runtime.controlling.controller import Outcome, ReconcileError
from pergola.runtime.controlling.events import Recorder

NAMESPACE: Final = "ns"
NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)


class WritableCluster(Cluster):
    """A cluster that counts the updates and creations of objects, by name.

    Attributes:
        writes: the names of written objects, in order.
    """

    def __init__(self, documents: Iterable[JsonObject] = (), **options: Any) -> None:
        self.writes: list[str] = []
        super().__init__(documents, **options)

    async def create(self, obj: JsonObject, *, dry_run: bool = False) -> JsonObject:
        """Count and create."""
        created = await super().create(obj, dry_run=dry_run)
        self.writes.append(created["metadata"]["name"])
        return created

    async def update(self, obj: JsonObject, *, subresource: str = "") -> JsonObject:
        """Count and update; an update that changes nothing keeps the resourceVersion."""
        self.writes.append(obj["metadata"]["name"])
        live = await self.get(GroupVersionKind.of(obj), Key.of(obj))
        default(obj)
        if not subresource and live == obj:
            return live
        return await super().update(obj, subresource=subresource)

    def _stamp(self, obj: JsonObject) -> None:
        default(obj)
        super()._stamp(obj)


def default(obj: JsonObject) -> None:
    """Set what the API server sets in objects of a custom kind with a default."""
    if obj.get("kind") == "Widget":
        obj.setdefault("spec", {}).setdefault("mode", "Auto")


class WatchedTarget:
    """A target whose watches always show the newest state of labelled objects.

    Attributes:
        stale: autoscalers to report instead of those that exist.
        uncovered: namespaces that no watch covers.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.client = cluster.client
        self.describers = Describers()
        self.autoscalers = self
        self.stale: list[JsonObject] | None = None
        self.uncovered: Collection[str] = ()
        self._cluster = cluster

    async def of(self, namespaces: Iterable[str]) -> list[JsonObject]:
        """Return the autoscalers."""
        if self.stale is not None:
            return self.stale
        return [hpa for n in namespaces for hpa in await self.client.list(HPA, n)]

    def deleted(self, key: Key) -> None:
        """Drop a deleted autoscaler."""
        if self.stale is not None:
            self.stale = [each for each in self.stale if Key.of(each) != key]

    async def answers(self) -> bool:
        """Answer."""
        return True

    async def watch(self, _: GroupVersionKind) -> None:
        """Watch already."""

    def covers(self, _: GroupVersionKind, key: Key) -> bool:
        """Cover all objects in other namespaces."""
        return key.namespace not in self.uncovered

    def seen(self, gvk: GroupVersionKind, key: Key) -> Observed | None:
        """Return the newest state."""
        for document in self._cluster.documents:
            is_it = GroupVersionKind.of(document).group_kind == gvk.group_kind
            if is_it and Key.of(document) == key:
                ours = labels_of(document).get(marks.MANAGED_BY) == "gardener"
                return keeper(gvk, lambda _: True)(copy.deepcopy(document)) if ours else None
        return None

    async def live(self, gvk: GroupVersionKind, key: Key) -> JsonObject | None:
        """Read the object."""
        return await self.client.find(gvk, key)

    def observe(self, _: JsonObject) -> None:
        """See it already."""

    def need(self, *_: object) -> None:
        """Watch everything."""

    def unwatched(self, _: GroupVersionKind) -> str | None:
        """Watch everything."""


class _Secrets:
    @asynccontextmanager
    async def leaving(self, _: Key) -> AsyncGenerator[None]:
        yield


class ManagedSite:
    """A source and a target, and the controller between them.

    Attributes:
        home: the cluster of the ManagedResources.
        away: the cluster of the objects.
        seconds: the time on the clock of repairs.
    """

    def __init__(self, settings: Settings | None = None, **options: Any) -> None:
        self.home, self.away = Cluster([]), WritableCluster(**options)
        self.seconds = 0.0
        self._settings = settings or Settings()
        self.restart()

    def restart(self) -> None:
        """Start the process again: it remembers nothing."""
        clock = FakeClock(NOW)
        self.source = Source(self.home.client, Responsibility(DEFAULT_CLASS))
        for document in self.home.documents:
            self._observe(document)
        self.target = WatchedTarget(self.away)
        target = cast("Target", self.target)
        self.completions = Completions()
        self.applier = Applier(target, FightLimit(lambda: self.seconds, clock))
        self.planner = Planner(self.source, target, managed_by="gardener")
        self.reconciler = ManagedResources(
            self.source,
            cast("Any", _Secrets()),
            self.planner,
            self.applier,
            Pruner(target, clock, collects_garbage=False),
            self.completions,
            self._settings,
            "",
            Recorder(self.home.client, "test", clock=clock),
            Refusals(CollectorRegistry()),
            clock,
        )

    def _observe(self, document: JsonObject) -> None:
        if document["kind"] == SECRET.kind:
            self.source.secrets.observe(copy.deepcopy(document))
        elif document["kind"] == MANAGED_RESOURCE.kind:
            self.source.observe(copy.deepcopy(document))

    async def describe(self, name: str, *objects: JsonObject, **spec: object) -> None:
        """Write a ManagedResource and its Secret, with exactly these objects."""
        data = {f"{n}.yaml": _encoded(each) for n, each in enumerate(objects)}
        await self._put(SECRET, name, {"data": data})
        fields: JsonObject = {"spec": {"secretRefs": [{"name": name}], **spec}}
        await self._put(MANAGED_RESOURCE, name, fields)

    async def _put(self, gvk: GroupVersionKind, name: str, fields: JsonObject) -> None:
        live = await self.home.find(gvk, Key(NAMESPACE, name))
        if live is None:
            metadata: JsonObject = {"name": name, "namespace": NAMESPACE, "generation": 1}
            obj = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, **fields}
            self._observe(await self.home.create(obj))
        elif any(live.get(field) != value for field, value in fields.items()):
            live.update(copy.deepcopy(fields))
            live["metadata"]["generation"] += 1
            self._observe(await self.home.update(live))

    async def delete(self, name: str) -> None:
        """Delete a ManagedResource; its runs finish that."""
        await self.home.delete(MANAGED_RESOURCE, Key(NAMESPACE, name))
        await self.run(name, times=2)

    async def run(self, name: str, *, times: int = 2) -> Outcome | Exception | None:
        """Run the controller for a ManagedResource, and record what it completes."""
        key = Key(NAMESPACE, name)
        outcome: Outcome | Exception | None = None
        for _ in range(times):
            present = await self.home.find(MANAGED_RESOURCE, key)
            if present is None:
                (cache,) = self.source.resources
                cache._drop(key)
                return await self.reconciler.reconcile(key)
            self._observe(present)
            try:
                outcome = await self.reconciler.reconcile(key)
            except (KubeError, ReconcileError) as error:
                outcome = error
            await self._record(key, uid_of(present))
        return outcome

    async def _record(self, key: Key, uid: str) -> None:
        completion = self.completions.of(key, uid)
        if completion is None:
            return
        written = await self.home.get(MANAGED_RESOURCE, key)
        recorded = completion.recorded(written, NOW)
        self._observe(await self.home.update(recorded, subresource="status"))
        self.completions.drop(key)

    async def live(self, gvk: GroupVersionKind, name: str) -> JsonObject | None:
        """Return an object in the target."""
        return await self.away.find(gvk, Key(NAMESPACE, name))

    async def edit(self, gvk: GroupVersionKind, name: str, fields: JsonObject) -> None:
        """Edit an object in the target, as another client does."""
        await self.away.patch(gvk, Key(NAMESPACE, name), fields)

    async def message(self, name: str) -> str:
        """Return the message about applied objects."""
        resource = await self.home.get(MANAGED_RESOURCE, Key(NAMESPACE, name))
        conditions = maps_at(resource, "status", "conditions")
        return "".join(c["message"] for c in conditions if c["type"] == "ResourcesApplied")


def _encoded(obj: JsonObject) -> str:
    return base64.b64encode(orjson.dumps(obj)).decode()
