"""A namespace for processes of tests."""

from collections.abc import AsyncIterator

import pytest

from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import Sandbox
from pergola.testing.crds import install_crds
from pergola.testing.world import RecordingClient, World


@pytest.fixture
async def world(sandbox: Sandbox, cluster_client: Client, namespace: str) -> AsyncIterator[World]:
    """Yield a namespace that the test's processes manage."""
    await install_crds(cluster_client)
    async with RecordingClient.connect(load(sandbox.kubeconfig)) as recorder:
        yield World(cluster_client, recorder, namespace)
