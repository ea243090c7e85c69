"""Fixtures of the resource manager's tests on the real API server.

Tests that use `managed_world` run twice: with a resource manager in the test's process, and with
the one that runs as a Deployment on the real node.
"""

from collections.abc import AsyncIterator

import pytest

from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import Sandbox
from pergola.testing.crds import install_crds
from pergola.testing.namespaces import create_namespace, delete_namespace
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


@pytest.fixture(params=["process", pytest.param("deployment", marks=pytest.mark.node)])
async def managed_world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """A namespace whose ManagedResources a resource manager with its default options handles."""
    deployed = request.param == "deployment"
    at: Sandbox = request.getfixturevalue("running_manager" if deployed else "sandbox")
    async with RecordingClient.connect(load(at.kubeconfig)) as client:
        await install_crds(client)
        world = World(client, client, await create_namespace(client, request.node.name))
        if not deployed:
            await world.start()
        try:
            yield world
        finally:
            await world.stop()
            await delete_namespace(client, world.namespace)


@pytest.fixture
async def second_client(second_sandbox: Sandbox) -> AsyncIterator[Client]:
    """A client of the second cluster."""
    async with Client.connect(load(second_sandbox.kubeconfig)) as client:
        yield client
