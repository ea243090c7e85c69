"""The retrigger makes the API server call the high-availability webhook again: spec 11 §7.2."""

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import jsonpatch
import pytest

from pergola.admission.review import GroupVersionResource, Request, Verdict
from pergola.api.kinds import DEPLOYMENT, HPA, NAMESPACE, NODE
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.resource_manager.controllers.high_availability_retrigger import (
    Settings,
    high_availability_retrigger,
)
from pergola.resource_manager.webhooks.facts.environment import ClusterEnvironment
from pergola.resource_manager.webhooks.facts.high_availability import PREFIX, TODAY
from pergola.resource_manager.webhooks.high_availability_config import HighAvailability
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import running, settled
from pergola.testing.world import RecordingClient


class Site:
    """A namespace with workloads, and the controller without a webhook behind it.

    No webhook answers the API server here, so objects do not change, and each trigger causes a
    patch.
    """

    def __init__(self, client: Client, recorder: RecordingClient, namespace: str) -> None:
        self.client = client
        self.recorder = recorder
        self.namespace = namespace
        self.around = ClusterEnvironment(recorder)
        self.handler = HighAvailability(self.around, TODAY)

    @asynccontextmanager
    async def at_work(self, *, only_managed: bool = False) -> AsyncIterator[Unit]:
        """Yield the controller after its first pass over all objects."""
        async with running(Unit(caches=self.around.caches)):
            chosen = Settings(only_managed=only_managed, pauses=(), settling=0.0)
            unit = high_availability_retrigger(
                self.recorder, self.around, self.handler, chosen, metrics=Metrics()
            )
            async with running(unit):
                await self.patched(unit)
                yield unit

    async def patched(self, unit: Unit) -> list[str]:
        """Return which objects of this test were patched since the last call."""
        await settled(unit, self.client)
        taken = [write for write in self.recorder.taken() if f" {self.namespace}/" in write]
        return sorted(write.removeprefix("patch ") for write in taken)

    async def consider(self, **annotations: str | None) -> None:
        metadata: JsonObject = {
            "labels": {f"{PREFIX}/consider": "true"},
            "annotations": {
                f"{PREFIX}/{name.replace('_', '-')}": value for name, value in annotations.items()
            },
        }
        await self.client.patch(NAMESPACE, Key("", self.namespace), {"metadata": metadata})

    async def create(
        self, name: str, *, right: bool = True, labels: dict[str, str] | None = None
    ) -> None:
        """Create a Deployment, either as the webhook would change it or without constraints."""
        obj: JsonObject = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": self.namespace, "labels": labels or {}},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        }
        await self.client.create(await self.webhooked(obj) if right else obj)

    async def webhooked(self, obj: JsonObject) -> JsonObject:
        """Return the object as the webhook would change it."""
        verdict: Verdict = await self.handler(
            Request(
                uid="",
                operation="CREATE",
                kind=DEPLOYMENT,
                resource=GroupVersionResource("apps", "v1", "deployments"),
                namespace=self.namespace,
                name=Key.of(obj).name,
                object=copy.deepcopy(obj),
            )
        )
        patch = [edit.operation() for edit in verdict.edits]
        result: JsonObject = jsonpatch.apply_patch(obj, patch)
        return result

    def of(self, *names: str) -> list[str]:
        return sorted(f"Deployment {self.namespace}/{name}" for name in names)

    async def join(self, *names: str) -> None:
        for name in names:
            await self.client.create(
                {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
            )


@pytest.fixture
async def site(lone_client: Client, recorder: RecordingClient, fresh: str) -> Site:
    return Site(lone_client, recorder, fresh)


async def test_correct_objects_are_never_patched(site: Site) -> None:
    await site.join("one", "two")
    await site.consider(failure_tolerance_type="node", zones="a,b")
    await site.create("web")
    async with running(Unit(caches=site.around.caches)):
        unit = high_availability_retrigger(
            site.recorder, site.around, site.handler, Settings(), metrics=Metrics()
        )
        async with running(unit):
            assert await site.patched(unit) == []


async def test_the_first_pass_patches_objects_that_the_webhook_missed(site: Site) -> None:
    await site.consider()
    await site.create("web", right=False)
    async with running(Unit(caches=site.around.caches)):
        unit = high_availability_retrigger(
            site.recorder, site.around, site.handler, Settings(), metrics=Metrics()
        )
        async with running(unit):
            assert set(await site.patched(unit)) == set(site.of("web"))


async def test_annotations_of_a_namespace_trigger_its_workloads(site: Site) -> None:
    await site.join("one", "two")
    await site.consider(zones="a,b")
    await site.create("web")
    await site.create("skipped", labels={f"{PREFIX}/skip": "false"})
    async with site.at_work() as unit:
        await site.consider(zones="a,b", failure_tolerance_type="node")
        assert await site.patched(unit) == site.of("web")
        metadata = {"metadata": {"labels": {"some": "label"}}}
        await site.client.patch(NAMESPACE, Key("", site.namespace), metadata)
        assert await site.patched(unit) == []


async def test_an_autoscaler_triggers_its_workload(site: Site) -> None:
    await site.join("one", "two")
    await site.consider(zones="a,b,c")
    await site.create("web")
    await site.create("other")
    async with site.at_work() as unit:
        await site.client.create(
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "web", "namespace": site.namespace},
                "spec": {
                    "scaleTargetRef": {
                        "apiVersion": "apps/v1",
                        "kind": "Deployment",
                        "name": "web",
                    },
                    "minReplicas": 2,
                    "maxReplicas": 3,
                },
            }
        )
        assert await site.patched(unit) == site.of("web")
        patch = {"spec": {"minReplicas": 1}}
        await site.client.patch(HPA, Key(site.namespace, "web"), patch)
        assert await site.patched(unit) == []


async def test_a_second_node_triggers_workloads_that_are_spread(site: Site) -> None:
    await site.join("one")
    await site.consider(failure_tolerance_type="node")
    await site.create("web")
    await site.create("plain", right=False)
    async with site.at_work() as unit:
        await site.join("two")
        assert await site.patched(unit) == site.of("web")
        await site.join("three")
        assert await site.patched(unit) == []
        await site.client.delete(NODE, Key("", "three"))
        await site.client.delete(NODE, Key("", "two"))
        # The webhook would have changed the object in between.
        assert await site.patched(unit) == []


async def test_the_return_to_a_single_node_triggers_workloads_that_are_spread(site: Site) -> None:
    await site.join("one", "two")
    await site.consider(failure_tolerance_type="node")
    await site.create("web")
    async with site.at_work() as unit:
        await site.client.delete(NODE, Key("", "two"))
        assert await site.patched(unit) == site.of("web")


async def test_other_namespaces_and_foreign_objects_are_left_alone(site: Site) -> None:
    await site.create("web", right=False)
    async with site.at_work(only_managed=True) as unit:
        await site.join("one", "two")
        assert await site.patched(unit) == []
        await site.consider(failure_tolerance_type="node")
        assert await site.patched(unit) == []
        labels = {"metadata": {"labels": {"resources.gardener.cloud/managed-by": "gardener"}}}
        await site.client.patch(DEPLOYMENT, Key(site.namespace, "web"), labels)
        await site.consider(failure_tolerance_type="zone")
        assert await site.patched(unit) == site.of("web")
