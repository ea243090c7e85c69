"""Fixtures of the resource manager's tests on the real API server."""

from collections.abc import AsyncIterator

import pytest

from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import Sandbox
from pergola.testing.crds import install_crds
from pergola.testing.world import RecordingClient, World


@pytest.fixture
async def world(sandbox: Sandbox, cluster_client: Client, namespace: str) -> AsyncIterator[World]:
    """A namespace in which a resource manager can be started; stopped at the end."""
    await install_crds(cluster_client)
    async with RecordingClient.connect(load(sandbox.kubeconfig)) as recorder:
        world = World(cluster_client, recorder, namespace)
        try:
            yield world
        finally:
            await world.stop()


@pytest.fixture
async def second_client(second_sandbox: Sandbox) -> AsyncIterator[Client]:
    """A client of the second cluster."""
    async with Client.connect(load(second_sandbox.kubeconfig)) as client:
        yield client
