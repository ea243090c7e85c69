"""Retries of the high-availability retrigger, and their limits."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pergola.api.kinds import DEPLOYMENT, HPA, NAMESPACE
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden
from pergola.resource_manager.controllers.high_availability_retrigger import (
    Settings,
    high_availability_retrigger,
)
from pergola.resource_manager.webhooks.facts.environment import ClusterEnvironment
from pergola.resource_manager.webhooks.facts.high_availability import PREFIX, SEED
from pergola.resource_manager.webhooks.high_availability_config import HighAvailability
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import PATIENCE, running, settled
from pergola.testing.world import RecordingClient

LABELS = {f"{PREFIX}/type": "server"}


def deployment(namespace: str, name: str, *, replicas: int = 1, **labels: str) -> JsonObject:
    selector = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": LABELS | labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": selector},
                "spec": {
                    "containers": [{"name": "c", "image": "i"}],
                    "topologySpreadConstraints": [
                        {
                            "topologyKey": "kubernetes.io/hostname",
                            "maxSkew": 1,
                            "whenUnsatisfiable": "ScheduleAnyway",
                            "labelSelector": {"matchLabels": selector},
                        }
                    ],
                },
            },
        },
    }


@pytest.fixture
async def considered(lone_client: Client, fresh: str) -> AsyncIterator[str]:
    """Yield a namespace that the webhook considers until the end of the test."""
    label = {f"{PREFIX}/consider": "true"}
    await lone_client.patch(NAMESPACE, Key("", fresh), {"metadata": {"labels": label}})
    yield fresh
    label = {f"{PREFIX}/consider": None}  # type: ignore[dict-item] # null deletes
    await lone_client.patch(NAMESPACE, Key("", fresh), {"metadata": {"labels": label}})


class Working:
    """The controller with the lookups of its handler."""

    def __init__(self, client: RecordingClient, namespace: str, **settings: Any) -> None:
        self.recorder = client
        self.around = ClusterEnvironment(
            client, considered=f"kubernetes.io/metadata.name={namespace},{PREFIX}/consider=true"
        )
        self.unit = high_availability_retrigger(
            client,
            self.around,
            HighAvailability(self.around, SEED),
            Settings(**settings),
            metrics=Metrics(),
        )
        self.seen = Unit(caches=self.around.caches)

    async def until_written(self, *desired: str) -> None:
        """Wait until exactly these writes were made, in this order."""
        async with asyncio.timeout(PATIENCE):
            while len(getattr(self.recorder, "writes", [])) < len(desired):
                await self.recorder.get_raw("/version")
        await settled(self.unit, self.recorder)
        assert self.recorder.taken() == [*desired]


async def test_an_ineffective_patch_is_retried_a_few_times(
    lone_client: Client, recorder: RecordingClient, considered: str
) -> None:
    # No webhook is registered here, as if the replica that was asked did not know of it yet.
    await lone_client.create(deployment(considered, "web"))
    work = Working(recorder, considered, pauses=(0.01, 0.02))
    async with running(work.seen, work.unit):
        patch = f"patch Deployment {considered}/web"
        await work.until_written(patch, patch, patch)
        # The controller has given up; the next change makes it try again.
        annotations = {f"{PREFIX}/failure-tolerance-type": "node"}
        await lone_client.patch(
            NAMESPACE, Key("", considered), {"metadata": {"annotations": annotations}}
        )
        await work.until_written(patch, patch, patch)


async def test_a_workload_keeps_its_replicas_for_a_while_after_its_autoscaler_is_deleted(
    lone_client: Client, recorder: RecordingClient, considered: str
) -> None:
    await lone_client.create(deployment(considered, "web", replicas=5))
    scaler: JsonObject = {
        "apiVersion": HPA.api_version,
        "kind": HPA.kind,
        "metadata": {"name": "web", "namespace": considered},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 2,
            "maxReplicas": 5,
        },
    }
    await lone_client.create(scaler)
    work = Working(recorder, considered, pauses=(), settling=3600.0)
    async with running(work.seen, work.unit):
        await settled(work.unit, lone_client)
        await lone_client.delete(HPA, Key(considered, "web"))
        await until_forgotten(work, considered)
        assert recorder.taken() == []
        await lone_client.create(scaler | {"metadata": {"name": "again", "namespace": considered}})
        await settled(work.unit, lone_client)
        assert recorder.taken() == []
        await lone_client.delete(HPA, Key(considered, "again"))
        await until_forgotten(work, considered)
    await lone_client.create(scaler)
    work = Working(recorder, considered, pauses=(), settling=0.0)
    async with running(work.seen, work.unit):
        await settled(work.unit, lone_client)
        await lone_client.delete(HPA, Key(considered, "web"))
        await work.until_written(f"patch Deployment {considered}/web")


async def test_a_refused_object_does_not_delay_others(
    lone_client: Client, recorder: RecordingClient, considered: str
) -> None:
    for name in ("a-refused", "b"):
        await lone_client.create(deployment(considered, name))
    policy, binding = refusing("a-refused", considered)
    await lone_client.create(policy)
    await lone_client.create(binding)
    key = Key(considered, "a-refused")
    try:
        await until_refused(lone_client, key)
        work = Working(recorder, considered, pauses=())
        async with running(work.seen, work.unit):
            writes = [f"patch Deployment {considered}/{name}" for name in ("a-refused", "b")]
            await work.until_written(*writes)
    finally:
        for obj in (binding, policy):
            await lone_client.delete(GroupVersionKind.of(obj), Key.of(obj))


async def test_a_patch_that_the_webhook_would_refuse_is_not_sent(
    lone_client: Client, recorder: RecordingClient, considered: str
) -> None:
    wrong = deployment(considered, "wrong")
    wrong["metadata"]["annotations"] = {f"{PREFIX}/replicas": "many"}
    going = deployment(considered, "going")
    going["metadata"]["finalizers"] = ["example.org/wait"]
    for obj in (wrong, going):
        await lone_client.create(obj)
    await lone_client.delete(GroupVersionKind.of(going), Key.of(going))
    work = Working(recorder, considered, pauses=())
    async with running(work.seen, work.unit):
        await settled(work.unit, lone_client)
        assert recorder.taken() == []


async def until_forgotten(work: Working, namespace: str) -> None:
    """Wait until no autoscaler is cached and the queue of the controller is empty."""
    async with asyncio.timeout(PATIENCE):
        while any(key.namespace == namespace for key, _ in work.around.autoscalers[0].items()):
            await work.recorder.get_raw("/version")
    await settled(work.unit, work.recorder)


async def until_refused(client: Client, key: Key) -> None:
    """Wait until the policy is effective: the API server learns of it by watching."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await client.patch(DEPLOYMENT, key, {})
            except Forbidden:
                return
            await asyncio.sleep(0.1)


def refusing(name: str, namespace: str) -> tuple[JsonObject, JsonObject]:
    """Return a policy with its binding that prevents changes of one Deployment."""
    rule = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["deployments"],
    }
    own = f"request.name != '{name}' || request.namespace != '{namespace}'"
    group = "admissionregistration.k8s.io"
    policy = {
        "apiVersion": f"{group}/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": f"refusing-{namespace}"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": own, "reason": "Forbidden"}],
        },
    }
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": f"refusing-{namespace}"},
        "spec": {"policyName": f"refusing-{namespace}", "validationActions": ["Deny"]},
    }
    return policy, binding
