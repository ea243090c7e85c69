"""Fixtures for tests of the resource manager on a real API server.

Tests marked `in_cluster` run with a resource manager in the process of the test, and in the soak
also with one in a Deployment on a real node.
"""

from collections.abc import AsyncIterator

import pytest

from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import Sandbox
from pergola.testing.crds import install_crds
from pergola.testing.namespaces import clear_namespace, create_namespace
from pergola.testing.world import RecordingClient, World


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests marked `in_cluster` in both places."""
    if metafunc.definition.get_closest_marker("in_cluster"):
        marks = [pytest.mark.node, pytest.mark.soak("node")]
        places = ["process", pytest.param("deployment", marks=marks)]
        metafunc.parametrize("world", places, indirect=True)


@pytest.fixture
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """Yield a namespace in which a test starts a resource manager, or in which one is running.

    In tests marked `in_cluster`, the resource manager has its default options.
    """
    place = getattr(request, "param", "")
    fixture = "running_manager" if place == "deployment" else "sandbox"
    at: Sandbox = request.getfixturevalue(fixture)
    async with (
        Client.connect(load(at.kubeconfig)) as client,
        RecordingClient.connect(load(at.kubeconfig)) as recorder,
    ):
        await install_crds(client)
        world = World(client, recorder, await create_namespace(client, request.node.name))
        try:
            if place == "process":
                await world.start()
            yield world
        finally:
            await world.stop()
            await clear_namespace(client, world.namespace)


@pytest.fixture
async def second_client(second_sandbox: Sandbox) -> AsyncIterator[Client]:
    """Yield a client of the second cluster."""
    async with Client.connect(load(second_sandbox.kubeconfig)) as client:
        yield client
