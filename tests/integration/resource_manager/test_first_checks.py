"""A run is recorded even if the first check of its objects cannot be made."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pergola.api.objects import JsonObject, Key, generation_of
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.resource_manager.manager import ResourceManager
from pergola.runtime.controlling.unit import Unit
from pergola.testing.waiting import running
from pergola.testing.world import World, condition, instance_options, is_applied
from tests.support.service_accounts import service_account_config, until_granted

RBAC = "rbac.authorization.k8s.io"
RULES: list[JsonObject] = [
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]},
    {
        "apiGroups": ["autoscaling"],
        "resources": ["horizontalpodautoscalers"],
        "verbs": ["get", "list", "watch"],
    },
]


@pytest.fixture
async def blind(world: World, kubeconfig: Path) -> AsyncIterator[Client]:
    """Yield the client of an identity that manages Deployments but cannot see their pods."""
    metadata = {"name": "blind", "namespace": world.namespace}
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": world.namespace}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": RULES}
    await world.client.create(role)
    await world.client.create(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "blind"},
            "subjects": [subject],
        }
    )
    await until_granted(world.client, Key(world.namespace, "default"))
    identity = await service_account_config(load(kubeconfig), world.namespace)
    async with Client.connect(identity) as client:
        yield client


async def test_a_run_whose_pods_cannot_be_listed_is_recorded_as_applied(
    world: World, blind: Client
) -> None:
    options = instance_options(
        source_namespaces=(world.namespace,), target_namespaces=(world.namespace,)
    )
    manager = ResourceManager(world.client, blind, options)
    labels = {"app": "web"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": world.namespace},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "registry.example/c:1"}]},
            },
        },
    }
    async with running(Unit("manager", tasks=[manager.run])):
        await world.create("demo", deployment)
        done = await world.until("demo", is_applied)

    assert done["status"]["observedGeneration"] == generation_of(done)
    assert condition(done, "ResourcesHealthy") == ("Unknown", "ChecksPending")
