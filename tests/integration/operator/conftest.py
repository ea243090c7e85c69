"""A control plane whose API server knows Gardens, for one worker of the tests alone.

A Garden and its webhooks are for a whole cluster: tests in one cluster run one after another.
"""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import API_ONLY, Sandbox, start, stop
from pergola.testing.crds import install_operator_crds
from pergola.testing.operator_site import OperatorSite


@pytest.fixture(scope="session")
def garden_sandbox() -> Iterator[Sandbox]:
    """etcd and an API server with the operator's kinds and the namespace `garden`."""
    name = f"garden-{os.getpid()}-{secrets.token_hex(3)}"
    with ThreadPoolExecutor(max_workers=1) as thread:
        sandbox = thread.submit(asyncio.run, start(name, components=API_ONLY)).result()
        thread.submit(asyncio.run, _prepare(sandbox)).result()
        yield sandbox
        thread.submit(asyncio.run, stop(name)).result()


@pytest.fixture
async def runtime(garden_sandbox: Sandbox) -> AsyncIterator[Client]:
    """The administrator of the cluster; Gardens and Extensions go with the test."""
    async with Client.connect(load(garden_sandbox.kubeconfig)) as client:
        yield client
        for gvk in (GARDEN, EXTENSION):
            for obj in await client.list(gvk):
                await client.delete(gvk, Key.of(obj))


@pytest.fixture
async def site(runtime: Client) -> AsyncIterator[OperatorSite]:
    """The cluster while the operator's webhooks are registered and served."""
    found = OperatorSite(runtime)
    async with found.serving():
        yield found


async def _prepare(sandbox: Sandbox) -> None:
    namespace: JsonObject = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "garden"},
    }
    async with Client.connect(load(sandbox.kubeconfig)) as client:
        await install_operator_crds(client)
        await client.create(namespace)
