"""A run of Pergola's controller for one ManagedResource, in clusters in memory."""

import base64
import copy
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final, cast

import orjson
from prometheus_client import CollectorRegistry

from conformance.clusters import Cluster
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at
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
from pergola.resource_manager.target.describers import Describers
from pergola.runtime.clock import FakeClock
from pergola.runtime.controlling.controller import ReconcileError
from pergola.runtime.controlling.events import Recorder

NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
RESOURCE: Final = Key("n", "mr")
_RUNS: Final = 4


class _Target:
    """The target of a run, without watches: everything is read from the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.client = cluster.client
        self.describers = Describers()
        self.autoscalers = self

    async def of(self, namespaces: Iterable[str]) -> list[JsonObject]:
        kind = GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler")
        return [hpa for n in namespaces for hpa in await self.client.list(kind, n)]

    def deleted(self, _: Key) -> None:
        pass

    async def answers(self) -> bool:
        return True

    async def watch(self, _: GroupVersionKind) -> None:
        pass

    def covers(self, *_: object) -> bool:
        return False

    async def live(self, gvk: GroupVersionKind, key: Key) -> JsonObject | None:
        return await self.client.find(gvk, key)

    def observe(self, _: JsonObject) -> None:
        pass

    def need(self, *_: object) -> None:
        pass

    def unwatched(self, _: GroupVersionKind) -> str | None:
        return None


class _Secrets:
    @asynccontextmanager
    async def leaving(self, _: Key) -> AsyncGenerator[None]:
        yield


async def run(question: JsonObject) -> JsonObject:
    """Return what exists after several runs, as the oracle answers."""
    resource, manifests = question["resource"], question["manifests"]
    cluster = Cluster(question["target"], refused=question["refused"])
    home = Cluster([resource, _secret(manifests)])
    source = Source(home.client, Responsibility(DEFAULT_CLASS))
    clock, completions = FakeClock(NOW), Completions()
    target = cast("Target", _Target(cluster))
    reconciler = ManagedResources(
        source,
        _Secrets(),
        Planner(source, target, managed_by="gardener"),
        Applier(target, FightLimit(lambda: 0.0, clock)),
        Pruner(target, clock, question["collected"]),
        completions,
        Settings(),
        question["clusterID"],
        Recorder(home.client, "conformance", clock=clock),
        Refusals(CollectorRegistry()),
        clock,
    )
    failed: Exception | None = None
    for _ in range(_RUNS):
        present = await home.find(MANAGED_RESOURCE, RESOURCE)
        if present is None:
            break
        source.observe(copy.deepcopy(present))
        try:
            failed = None
            await reconciler.reconcile(RESOURCE)
        except (KubeError, ReconcileError) as error:
            failed = error
    found: JsonObject = {
        "objects": _present(cluster, [*question["target"], *manifests]),
        "propagations": cluster.propagations,
        "failed": failed is not None,
        "why": str(failed),
    }
    written = await home.find(MANAGED_RESOURCE, RESOURCE)
    if written is None:
        return {**found, "gone": True}
    completion = completions.of(RESOURCE, "1")
    if completion is not None:
        written = completion.recorded(written, NOW)
    applied = [
        f"{c['status']} {c['reason']}"
        for c in maps_at(written, "status", "conditions")
        if c["type"] == "ResourcesApplied"
    ]
    resources = {"resources": map_at(written, "status").get("resources")}
    return {**found, **resources, **({"applied": applied[0]} if applied else {})}


def _secret(manifests: list[JsonObject]) -> JsonObject:
    data = {f"{n}.yaml": _encoded(each) for n, each in enumerate(manifests)}
    metadata = {"name": "manifests", "namespace": RESOURCE.namespace, "uid": "2"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def _encoded(obj: JsonObject) -> str:
    return base64.b64encode(orjson.dumps(obj)).decode()


def _present(cluster: Cluster, documents: Iterable[JsonObject]) -> JsonObject:
    found: JsonObject = {}
    names = {(d["kind"], d["metadata"]["name"]) for d in documents}
    for obj in cluster.documents:
        gvk, key = GroupVersionKind.of(obj), Key.of(obj)
        if (gvk.kind, key.name) in names:
            found[f"{gvk.group}/{gvk.kind}/{key.namespace}/{key.name}"] = obj
    return found
