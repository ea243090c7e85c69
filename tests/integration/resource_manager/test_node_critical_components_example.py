"""The example of node-critical components, with a real DaemonSet controller: spec 11 §5."""

import asyncio
from pathlib import Path

from pergola.api.kinds import DAEMON_SET, EVENT, NODE
from pergola.api.objects import JsonObject, Key, maps_at
from pergola.kube.client import Client
from pergola.kube.yaml import parse_documents
from pergola.resource_manager.controllers.node_critical_components import (
    Settings,
    node_critical_components,
)
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import PATIENCE, running, until

EXAMPLE = Path(__file__).parents[3] / "examples" / "node-critical-components"
TAINT = "node.gardener.cloud/critical-components-not-ready"


async def test_the_example_does_what_its_readme_says(cluster_client: Client) -> None:
    node = Key("", "example-node")
    async with running(node_critical_components(cluster_client, Settings(), metrics=Metrics())):
        await apply(cluster_client, "1-node.yaml")
        await until_told(cluster_client, node, "UnreadyRequiredCSIDrivers")
        assert TAINT in taints(await cluster_client.get(NODE, node))
        await apply(cluster_client, "2-csi-node.yaml")
        await until(cluster_client, NODE, node, lambda n: TAINT not in taints(n))
        await until_told(cluster_client, node, "NodeCriticalComponentsReady")
    await cluster_client.delete(DAEMON_SET, Key("kube-system", "example-csi-driver-node"))
    await cluster_client.delete(NODE, node)


async def apply(client: Client, file: str) -> None:
    """Apply manifests as kubectl would."""
    for document in parse_documents((EXAMPLE / file).read_text()):
        assert isinstance(document.value, dict)
        await client.apply(document.value, manager="kubectl")


async def until_told(client: Client, node: Key, reason: str) -> None:
    """Wait for an Event with this note; the README shows the notes of warnings."""
    readme = (EXAMPLE / "README.md").read_text()
    fields = f"regarding.name={node.name},reason={reason}"
    async with asyncio.timeout(PATIENCE):
        while not (found := await client.list(EVENT, "default", fields=fields)):
            await client.get_raw("/version")
    assert reason in readme
    if found[0]["type"] == "Warning":
        assert found[0]["note"] in readme


def taints(node: JsonObject) -> list[str]:
    """Return the keys of a Node's taints."""
    return [taint["key"] for taint in maps_at(node, "spec", "taints")]
