"""Fixtures: a separate cluster as the Shoot, and source and target clusters of tokens."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from pergola.api.objects import JsonObject
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import Sandbox
from pergola.testing.shared import private
from tests.support.token_clusters import Clusters, token_clusters


@pytest.fixture(scope="session")
def shoot_sandbox() -> Iterator[Sandbox]:
    """Yield the Shoot's sandbox, one per test process; tests in it run one after another."""
    with private() as own:
        yield own


@pytest.fixture
async def shoot(shoot_sandbox: Sandbox) -> AsyncIterator[Client]:
    """Yield an administrator's client of the Shoot."""
    async with Client.connect(load(shoot_sandbox.kubeconfig)) as client:
        for value in range(500, 1000, 100):
            await client.apply(priority_class(value), manager="shoot-system")
        yield client


@pytest.fixture
async def clusters(
    kubeconfig: Path, cluster_client: Client, namespace: str, second_sandbox: Sandbox
) -> AsyncIterator[Clusters]:
    """Yield the sandbox as source and a second control plane as target."""
    target = load(second_sandbox.kubeconfig)
    async with token_clusters(load(kubeconfig), target, cluster_client, namespace) as clusters:
        yield clusters


def priority_class(value: int) -> JsonObject:
    """Return a PriorityClass that every Shoot has."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"gardener-shoot-system-{value}"},
        "value": 999_998_000 + value,
    }
