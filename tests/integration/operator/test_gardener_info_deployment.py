"""The ConfigMap about Gardener is written to a real API server, once (spec 20 §16.2)."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import Key
from pergola.flow import Graph, run
from pergola.garden.landscape import Landscape
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists
from pergola.kube.kubeconfig import load
from pergola.operator.reconcile.gardener_info import add_gardener_info_task, deploy, served_version
from pergola.sandbox import Sandbox
from pergola.testing.world import RecordingClient
from tests.support.garden import landscape
from tests.support.garden_run import garden_run

KEY: Final = Key("gardener-system-public", "gardener-info")


@pytest.fixture
async def virtual(garden_sandbox: Sandbox) -> AsyncIterator[RecordingClient]:
    async with RecordingClient.connect(load(garden_sandbox.kubeconfig)) as client:
        with suppress(AlreadyExists):
            namespace = {"name": KEY.namespace}
            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})
        client.taken()
        yield client
        await client.delete(CONFIG_MAP, KEY)


async def version_in(client: Client) -> str:
    data = (await client.get(CONFIG_MAP, KEY))["data"]["gardenerAPIServer"]
    return str(data).splitlines()[0]


async def test_the_config_map_is_written_only_when_it_changes(virtual: RecordingClient) -> None:
    said = "v1.130.0"

    async def ask(_: Landscape) -> str:
        return said

    for _ in range(2):
        await deploy(virtual, landscape(), ask)
    assert virtual.taken() == [f"apply ConfigMap {KEY}"]
    said = "v1.131.0"
    await deploy(virtual, landscape(), ask)
    assert virtual.taken() == [f"apply ConfigMap {KEY}"]
    assert await version_in(virtual) == "version: v1.131.0"


async def test_if_the_server_is_unreachable_the_version_comes_from_the_images(
    virtual: RecordingClient,
) -> None:
    site = landscape(gardener_version="v1.129.0")
    assert await served_version(site) == ""
    graph = Graph("Garden reconciliation")
    for name in (
        "Waiting until Gardener API server rolled out",
        "Initializing connection to virtual garden cluster",
    ):
        graph.add(name, nothing)

    add_gardener_info_task(graph, await garden_run(virtual, virtual, site))
    await run(graph)
    assert await version_in(virtual) == "version: v1.129.0"


async def nothing() -> None:
    """Succeed."""
