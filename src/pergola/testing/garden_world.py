"""A cluster in which a Garden comes up without root: everything but its nodes and pods is real.

The API server of the runtime cluster is that of a sandbox. The etcds, the API server and the
controller manager of the virtual cluster and both resource managers are processes, started from the
pods that the operator's Deployments lead to; kwok simulates all other pods.
"""

import asyncio
import os
import secrets
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from pergola.api.objects import JsonObject
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import Sandbox, start, stop
from pergola.sandbox.process_node import Endpoint, ProcessNode, api_server_flags, process_node
from pergola.sandbox.simulated.claims import claims_unit
from pergola.sandbox.simulated.etcd_druid import druid_unit
from pergola.sandbox.simulated.load_balancers import load_balancers_unit
from pergola.testing.waiting import running

GARDEN_NAMESPACE: Final = "garden"


@dataclass(frozen=True)
class GardenWorld:
    """A runtime cluster that runs the pods of the namespace `garden`.

    Attributes:
        client: the administrator's.
        sandbox: the runtime cluster.
        directory: holds the processes' logs and files: `garden/<ReplicaSet>/<container>.log`.
        node: runs the pods.
    """

    client: Client
    sandbox: Sandbox
    directory: Path
    node: ProcessNode

    def reach(self, host: str, port: int = 443) -> Endpoint:
        """Return the loopback address of a Service's process, whose certificate has its names.

        Raises:
            AssertionError: nothing runs there.
        """
        found = self.node.reach(host, port)
        assert found is not None, f"nothing runs behind {host}:{port}"
        return found


@dataclass(frozen=True)
class GardenSandbox:
    """A sandbox that can become a `GardenWorld`, and the directory of the world's files."""

    sandbox: Sandbox
    directory: Path


@pytest.fixture(scope="session")
def garden_world_sandbox() -> Iterator[GardenSandbox]:
    """A control plane with simulated nodes, whose webhooks can be processes of the world."""
    name = f"world-{os.getpid()}-{secrets.token_hex(3)}"
    with (
        tempfile.TemporaryDirectory(prefix="pergola-") as folder,
        ThreadPoolExecutor(max_workers=1) as thread,
    ):
        directory = Path(folder)
        flags = api_server_flags(directory)
        sandbox = thread.submit(asyncio.run, start(name, apiserver_flags=flags)).result()
        yield GardenSandbox(sandbox, directory)
        thread.submit(asyncio.run, stop(name)).result()


@pytest.fixture
async def garden_world(garden_world_sandbox: GardenSandbox) -> AsyncIterator[GardenWorld]:
    """A runtime cluster with an empty namespace `garden`, while it runs pods."""
    async with garden_world_in(garden_world_sandbox) as world:
        yield world


@asynccontextmanager
async def garden_world_in(found: GardenSandbox) -> AsyncGenerator[GardenWorld]:
    """Run a world until the block ends."""
    sandbox, directory = found.sandbox, found.directory
    async with Client.connect(load(sandbox.kubeconfig)) as client:
        await _apply_namespace(client)
        node = process_node(client, sandbox.kubeconfig, directory, GARDEN_NAMESPACE)
        async with (
            node as serving,
            running(
                serving.unit,
                druid_unit(client, GARDEN_NAMESPACE),
                claims_unit(client),
                load_balancers_unit(client),
            ),
        ):
            yield GardenWorld(client, sandbox, directory, serving)


async def _apply_namespace(client: Client) -> None:
    namespace: JsonObject = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": GARDEN_NAMESPACE},
    }
    await client.apply(namespace, manager="pergola-testing", force=True)
