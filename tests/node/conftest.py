"""Fixtures for tests with a real node: a client, and a namespace for each test."""

from collections.abc import AsyncIterator

import pytest

from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import Sandbox
from pergola.testing.namespaces import clear_namespace, create_namespace
from pergola.testing.shared import require_images
from tests.support.istio_gateway import istio_in


@pytest.fixture
async def node_client(node_sandbox: Sandbox) -> AsyncIterator[Client]:
    """Yield a client of the node's cluster with administrator permissions."""
    async with Client.connect(load(node_sandbox.kubeconfig)) as client:
        yield client


@pytest.fixture
async def node_namespace(node_client: Client, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Yield a fresh namespace on the node."""
    name = await create_namespace(node_client, request.node.name)
    yield name
    await clear_namespace(node_client, name)


@pytest.fixture
async def istio(
    node_sandbox: Sandbox, node_client: Client, node_namespace: str
) -> AsyncIterator[str]:
    """Yield a namespace with the permissions of istiod, in a cluster with Istio's kinds."""
    require_images("istiod", "istio-proxy")
    async with istio_in(node_sandbox, node_client, node_namespace):
        yield node_namespace
