"""Checks of managed objects: pods that no watch covers, and what is remembered between them."""

import copy
from datetime import UTC, datetime
from typing import cast

import pytest

from conformance.clusters import Cluster
from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, DEPLOYMENT
from pergola.api.objects import GroupVersionKind, JsonObject, Key, labels_of, maps_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.resource_manager.controllers.health import Health
from pergola.resource_manager.controllers.health_verdict import Judge, Verdict
from pergola.resource_manager.controllers.managed_resource.completions import Completions
from pergola.resource_manager.responsibility import Responsibility
from pergola.resource_manager.source import Source
from pergola.resource_manager.target import Observed, Target
from pergola.resource_manager.target.observed import keeper
from pergola.resource_manager.target.pods import Pods
from pergola.resource_manager.target.watches import Watches
from pergola.runtime.clock import FakeClock

OURS = {marks.MANAGED_BY: "gardener"}
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MR = Key("ns", "mr")
POD = GroupVersionKind("", "v1", "Pod")


class Counting(Cluster):
    """A cluster that counts lists of pods.

    Attributes:
        lists: their number.
    """

    lists = 0

    async def list(
        self,
        gvk: GroupVersionKind,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        metadata_only: bool = False,
    ) -> list[JsonObject]:
        """Count and list."""
        del fields, metadata_only
        self.lists += 1
        return await super().list(gvk, namespace, labels=labels)


def deployment(generation: int) -> JsonObject:
    """Return a Deployment that is rolled out, except that old pods may exist."""
    template = {"metadata": {"labels": {"app": "web", **OURS}}}
    metadata = {"name": "web", "namespace": "ns", "uid": "1", "generation": generation}
    conditions = [
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
        {"type": "Available", "status": "True"},
    ]
    return {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.kind,
        "metadata": {**metadata, "labels": OURS},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template},
        "status": {"observedGeneration": generation, "conditions": conditions},
    }


def pod(name: str, labels: JsonObject) -> JsonObject:
    """Return a running pod of the Deployment."""
    owner = {"kind": "ReplicaSet", "name": f"web-{name}", "controller": True}
    metadata = {
        "name": name,
        "namespace": "ns",
        "labels": {"app": "web", "pod-template-hash": name, **labels},
        "ownerReferences": [owner],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": "Running"}}


class Site:
    """A judge of one Deployment, with a watch of the pods that have our label."""

    def __init__(self, *pods: JsonObject, generation: int = 2) -> None:
        self.cluster = Counting([deployment(generation), *pods])
        watches = Watches(self.cluster.client, managed_by="gardener", namespaces=())
        self.pods = Pods(watches)
        (self.cache,) = self.pods._start().caches
        for each in pods:
            if marks.MANAGED_BY in labels_of(each):
                self.cache.observe(copy.deepcopy(each))
        self.cache._live()
        self.judge = Judge(cast("Target", self), FakeClock(NOW))
        self.client = self.cluster.client

    async def watch(self, _: GroupVersionKind) -> None:
        """Watch already."""

    def covers(self, *_: object) -> bool:
        """Cover everything."""
        return True

    def seen(self, gvk: GroupVersionKind, _: Key) -> Observed:
        """Return the Deployment."""
        found = next(d for d in self.cluster.documents if d["kind"] == gvk.kind)
        return keeper(gvk, lambda _: True)(copy.deepcopy(found))

    async def check(self, progressing: str = "Unknown") -> Verdict:
        """Check once, with the status of ResourcesProgressing."""
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        condition = {"type": "ResourcesProgressing", "status": progressing}
        status = {"resources": [{**reference, "namespace": "ns"}], "conditions": [condition]}
        metadata = {"name": MR.name, "namespace": MR.namespace}
        return await self.judge.verdict({"metadata": metadata, "status": status}, ())


async def test_a_rollout_waits_for_pods_from_before_the_label() -> None:
    site = Site(pod("new", OURS), pod("old", {}))
    verdict = await site.check()
    assert verdict.rolling is not None
    assert "there are 2 pods, expected 1" in verdict.rolling[1]
    assert verdict.waits_for_unwatched
    await site.cluster.delete(POD, Key("ns", "old"))
    verdict = await site.check("True")
    assert verdict.is_good
    assert not verdict.waits_for_unwatched


async def test_the_server_is_asked_once_for_each_deployment() -> None:
    site = Site(pod("new", OURS))
    for _ in range(3):
        assert (await site.check()).is_good
    assert site.cluster.lists == 1
    site.judge.forget(MR)
    await site.check()
    assert site.cluster.lists == 2


async def test_the_server_is_not_asked_again_after_another_rollout() -> None:
    site = Site(pod("new", OURS))
    assert (await site.check()).is_good
    for reason in ("ReplicaSetUpdated", "NewReplicaSetAvailable"):
        (live,) = (each for each in site.cluster.documents if each["kind"] == DEPLOYMENT.kind)
        live["status"]["conditions"][0]["reason"] = reason
        await site.check("True")
    assert (await site.check("True")).is_good
    assert site.cluster.lists == 1


@pytest.mark.parametrize(("progressing", "generation"), [("False", 7), ("Unknown", 1)])
async def test_no_request_asks_for_pods_at_rest_or_of_a_new_deployment(
    progressing: str, generation: int
) -> None:
    site = Site(pod("new", OURS), generation=generation)
    assert (await site.check(progressing)).is_good
    assert site.cluster.lists == 0


async def test_a_loss_from_before_a_failed_run_is_not_reported_after_it() -> None:
    key, gvk = Key("ns", "x"), CONFIG_MAP
    metadata: JsonObject = {"name": key.name, "namespace": key.namespace, "labels": OURS}
    config_map: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    home, away = Cluster([]), Cluster([config_map])
    source = Source(home.client, Responsibility("resources"))
    target = cast("Target", _Target(away))
    health = Health(source, target, Completions(), FakeClock(NOW), sync_period=60)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "namespace": "ns"}
    status: JsonObject = {"resources": [reference], "conditions": []}
    resource: JsonObject = {
        "apiVersion": MANAGED_RESOURCE.api_version,
        "kind": MANAGED_RESOURCE.kind,
        "metadata": {"name": MR.name, "namespace": MR.namespace},
        "spec": {},
        "status": status,
    }
    stored = await home.create(resource)
    for applied in ("False", "True"):
        stored["status"]["conditions"] = [{"type": "ResourcesApplied", "status": applied}]
        stored = await home.update(stored, subresource="status")
        source.observe(copy.deepcopy(stored))
        if applied == "False":
            health.lost(MR, gvk, key)
        await health.reconcile(MR)
    written = await home.get(MANAGED_RESOURCE, MR)
    healthy = [
        c["status"]
        for c in maps_at(written, "status", "conditions")
        if c["type"] == "ResourcesHealthy"
    ]
    assert healthy == ["True"]


class _Target:
    """A target without watches."""

    def __init__(self, cluster: Cluster) -> None:
        self.client = cluster.client
        self._cluster = cluster

    async def watch(self, _: GroupVersionKind) -> None:
        """Watch nothing."""

    def covers(self, *_: object) -> bool:
        """Cover nothing."""
        return False

    async def live(self, gvk: GroupVersionKind, key: Key) -> JsonObject | None:
        """Read the object."""
        return await self._cluster.find(gvk, key)
