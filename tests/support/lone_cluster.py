"""Fixtures for controllers that watch a whole cluster, which only one test uses at a time.

The cluster has only etcd and the API server, so that nothing else changes Pods. Every worker of
pytest-xdist has its own cluster, in which its tests run one after another.
"""

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from pergola.api.kinds import NAMESPACE, NODE
from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import API_ONLY, Sandbox
from pergola.testing.shared import private
from pergola.testing.world import RecordingClient


@pytest.fixture(scope="session")
def lone_sandbox() -> Iterator[Sandbox]:
    """Yield a control plane for one worker."""
    with private(API_ONLY) as own:
        yield own


@pytest.fixture
async def lone_client(lone_sandbox: Sandbox) -> AsyncIterator[Client]:
    """Yield an administrator's client of the cluster, which has no Nodes at the start of a test."""
    async with Client.connect(load(lone_sandbox.kubeconfig)) as client:
        for node in await client.list(NODE, metadata_only=True):
            await client.delete(NODE, Key.of(node))
        yield client


@pytest.fixture
async def recorder(lone_sandbox: Sandbox) -> AsyncIterator[RecordingClient]:
    """Yield the controller's client, which records its writes."""
    async with RecordingClient.connect(load(lone_sandbox.kubeconfig)) as client:
        yield client


@pytest.fixture
async def fresh(lone_client: Client) -> AsyncIterator[str]:
    """Yield the name of a new namespace in which Pods can be created."""
    async with _namespace(lone_client) as name:
        yield name


@pytest.fixture
async def other(lone_client: Client) -> AsyncIterator[str]:
    """Yield the name of another new namespace."""
    async with _namespace(lone_client) as name:
        yield name


@asynccontextmanager
async def _namespace(client: Client) -> AsyncGenerator[str]:
    name = f"fresh-{secrets.token_hex(4)}"
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    account = {"name": "default", "namespace": name}
    await client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    yield name
    await client.delete(NAMESPACE, Key("", name))  # it stays, terminating
