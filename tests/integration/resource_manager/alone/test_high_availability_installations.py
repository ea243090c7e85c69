"""Changes of nodes trigger workloads, whoever registers the webhooks: spec 11 §7.2.

The configurations are those of the original, without `selfSigned`.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pergola.api.kinds import DEPLOYMENT, NAMESPACE, NODE
from pergola.api.objects import JsonObject, Key
from pergola.api.resource_manager_config import configuration_from
from pergola.kube.client import Client
from pergola.resource_manager.assembly import Clusters
from pergola.resource_manager.serving import WebhookServing
from pergola.resource_manager.webhooks.facts.high_availability import CONSIDER
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import running, settled
from pergola.testing.world import RecordingClient

ORIGINAL: JsonObject = {
    "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
    "kind": "ResourceManagerConfiguration",
    "sourceClientConnection": {"namespaces": ["shoot--foo--bar"]},
    "leaderElection": {
        "leaderElect": True,
        "resourceName": "gardener-resource-manager",
        "resourceNamespace": "shoot--foo--bar",
    },
    "server": {
        "healthProbes": {"port": 8081},
        "metrics": {"port": 8080},
        "webhooks": {"port": 10250, "tls": {"serverCertDir": "/etc/certificates"}},
    },
    "webhooks": {
        "highAvailabilityConfig": {
            "enabled": True,
            "defaultNotReadyTolerationSeconds": 60,
            "defaultUnreachableTolerationSeconds": 60,
        }
    },
}
OF_A_SHOOT: JsonObject = ORIGINAL | {"targetClientConnection": {"kubeconfig": "/etc/target"}}


@asynccontextmanager
async def leading(config: JsonObject, recorder: RecordingClient) -> AsyncIterator[Unit]:
    """Run the units of the leader for the webhooks of a configuration."""
    loaded, warnings = configuration_from(config, source="test")
    assert warnings == []
    serving = WebhookServing(loaded, Clusters(recorder, recorder), Metrics(), (1, 36))
    async with running(*serving.units):
        (unit,) = serving.leading()
        async with running(unit):
            await settled(unit, recorder)
            recorder.taken()
            yield unit


async def consider(client: Client, namespace: str, value: str | None = "true") -> None:
    patch = {"metadata": {"labels": {CONSIDER: value}}}
    await client.patch(NAMESPACE, Key("", namespace), patch)


async def deploy(client: Client, namespace: str) -> None:
    """Create a Deployment that tolerates a single node."""
    constraint = {
        "topologyKey": "kubernetes.io/hostname",
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "topologySpreadConstraints": [constraint],
        },
    }
    await client.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": "web",
                "namespace": namespace,
                "annotations": {f"{CONSIDER.partition('/')[0]}/host-spread": "true"},
            },
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": template,
            },
        }
    )


async def join(client: Client, *names: str) -> None:
    for name in names:
        await client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})


@pytest.fixture
async def kube_system(lone_client: Client) -> AsyncIterator[str]:
    yield "kube-system"
    await consider(lone_client, "kube-system", None)
    await lone_client.delete(DEPLOYMENT, Key("kube-system", "web"))


@pytest.mark.parametrize("config", [ORIGINAL, OF_A_SHOOT], ids=["runtime", "shoot"])
async def test_a_namespace_needs_only_the_label_that_requests_high_availability(
    lone_client: Client, recorder: RecordingClient, fresh: str, config: JsonObject
) -> None:
    await join(lone_client, "one")
    await consider(lone_client, fresh)
    await deploy(lone_client, fresh)
    async with leading(config, recorder) as unit:
        await join(lone_client, "two")
        await settled(unit, lone_client)
        assert f"patch Deployment {fresh}/web" in recorder.taken()
        await lone_client.delete(NODE, Key("", "two"))


async def test_a_system_namespace_of_a_shoot_is_considered(
    lone_client: Client, recorder: RecordingClient, kube_system: str
) -> None:
    await join(lone_client, "one")
    await consider(lone_client, kube_system)
    await deploy(lone_client, kube_system)
    async with leading(OF_A_SHOOT, recorder) as unit:
        await join(lone_client, "two")
        await settled(unit, lone_client)
        assert f"patch Deployment {kube_system}/web" in recorder.taken()
