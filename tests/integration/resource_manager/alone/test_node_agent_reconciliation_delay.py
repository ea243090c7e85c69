"""The delays of node agents on a real API server: spec 11 §7.1, and Beyond."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from pergola.api.kinds import NODE, SECRET
from pergola.api.objects import JsonObject, Key, annotations_of
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists
from pergola.resource_manager.controllers.node_agent_reconciliation_delay import (
    DELAY,
    Settings,
    node_agent_reconciliation_delay,
)
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import PATIENCE, running, settled, until
from pergola.testing.world import RecordingClient

SECRET_NAME = "worker.gardener.cloud/gardener-node-agent-secret-name"
SERIAL = "reconciliation.osc.node-agent.gardener.cloud/serial"
ROLE = {"gardener.cloud/role": "operating-system-config"}


def unit(client: Client, *, settling: float = 0.0) -> Unit:
    """Return the controller, for delays between 5 and 30 seconds."""
    settings = Settings(timedelta(seconds=5), timedelta(seconds=30), settling)
    return node_agent_reconciliation_delay(client, settings, metrics=Metrics())


async def put_node(client: Client, name: str, secret: str = "", delay: str = "") -> None:
    """Create a Node of the worker group with this operating system config."""
    metadata: JsonObject = {
        "name": name,
        "labels": {SECRET_NAME: secret} if secret else {},
        "annotations": {DELAY: delay} if delay else {},
    }
    await client.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata})


@pytest.fixture
async def secret(lone_client: Client) -> AsyncIterator[Key]:
    """Yield an operating system config with serial updates of its Nodes."""
    key = Key("kube-system", f"osc-{secrets.token_hex(4)}")
    metadata = {
        "name": key.name,
        "namespace": key.namespace,
        "labels": ROLE,
        "annotations": {SERIAL: "true"},
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
    with contextlib.suppress(AlreadyExists):
        await lone_client.create(namespace)
    await lone_client.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
    yield key
    await lone_client.delete(SECRET, key)


async def delays(client: Client) -> dict[str, str | None]:
    """Return the delay of each Node."""
    nodes = await client.list(NODE, metadata_only=True)
    return {node["metadata"]["name"]: annotations_of(node).get(DELAY) for node in nodes}


def expected(*delays: str) -> dict[str, str]:
    """Return the delays of node-0, node-1 and so on."""
    return {f"node-{number}": delay for number, delay in enumerate(delays)}


async def test_nodes_get_delays_in_the_order_of_their_names(
    lone_client: Client, recorder: RecordingClient
) -> None:
    for number in (3, 1, 0, 2):
        await put_node(lone_client, f"node-{number}")
    async with running(working := unit(recorder)):
        await settled(working, lone_client)
        assert await delays(lone_client) == expected("5s", "11.25s", "17.5s", "23.75s")
        assert sorted(recorder.taken()) == [f"patch Node node-{number}" for number in range(4)]
        await settled(working, lone_client)
        assert recorder.taken() == []


async def test_a_single_node_gets_the_shortest_delay(
    lone_client: Client, recorder: RecordingClient
) -> None:
    await put_node(lone_client, "node-0")
    async with running(working := unit(recorder)):
        await settled(working, lone_client)
        assert await delays(lone_client) == expected("5s")


async def test_nodes_with_serial_updates_get_no_delay(
    lone_client: Client, recorder: RecordingClient, secret: Key
) -> None:
    await put_node(lone_client, "node-0")
    await put_node(lone_client, "node-1")
    await put_node(lone_client, "node-0-serial", secret.name)
    await put_node(lone_client, "node-2", "no-such-secret")
    async with running(working := unit(recorder)):
        await settled(working, lone_client)
        third = expected("5s", "13.333333333s", "21.666666666s")
        assert await delays(lone_client) == {**third, "node-0-serial": None}


async def test_nodes_get_their_delays_as_soon_as_updates_are_not_serial(
    lone_client: Client, recorder: RecordingClient, secret: Key
) -> None:
    await put_node(lone_client, "node-0", secret.name)
    async with running(working := unit(recorder)):
        await settled(working, lone_client)
        assert recorder.taken() == []
        await lone_client.patch(SECRET, secret, {"metadata": {"annotations": {SERIAL: "false"}}})
        await until(lone_client, NODE, Key("", "node-0"), lambda n: DELAY in annotations_of(n))


async def test_a_restart_writes_nothing_and_manual_edits_are_reverted(
    lone_client: Client, recorder: RecordingClient
) -> None:
    await put_node(lone_client, "node-0", delay="5s")
    await put_node(lone_client, "node-1", delay="17.5s")
    async with running(working := unit(recorder)):
        await settled(working, lone_client)
        assert recorder.taken() == []
        edited = {"metadata": {"annotations": {DELAY: "1h"}}}
        await lone_client.patch(NODE, Key("", "node-0"), edited)
        await until(
            lone_client, NODE, Key("", "node-0"), lambda n: annotations_of(n)[DELAY] == "5s"
        )
        await settled(working, lone_client)
        assert recorder.taken() == ["patch Node node-0"]


async def test_a_node_that_joins_or_leaves_changes_all_delays(
    lone_client: Client, recorder: RecordingClient
) -> None:
    await put_node(lone_client, "node-0")
    await put_node(lone_client, "node-2")
    async with running(working := unit(recorder)):
        await settled(working, lone_client)
        await put_node(lone_client, "node-1")
        await until_delays(lone_client, expected("5s", "13.333333333s", "21.666666666s"))
        await lone_client.delete(NODE, Key("", "node-2"))
        await until_delays(lone_client, expected("5s", "17.5s"))


async def test_while_nodes_join_only_those_without_a_delay_are_written(
    lone_client: Client, recorder: RecordingClient
) -> None:
    for number in (0, 2, 4):
        await put_node(lone_client, f"node-{number}")
    async with running(working := unit(recorder, settling=3600.0)):
        await settled(working, lone_client)
        recorder.taken()
        for number in (1, 3):
            name = f"node-{number}"
            await put_node(lone_client, name)
            await until(lone_client, NODE, Key("", name), lambda n: DELAY in annotations_of(n))
        await settled(working, lone_client)
        assert recorder.taken() == ["patch Node node-1", "patch Node node-3"]
    # With a shorter settling time the others follow, as after any restart.
    async with running(working := unit(recorder)):
        await settled(working, lone_client)
    assert await delays(lone_client) == expected("5s", "10s", "15s", "20s", "25s")


async def until_delays(client: Client, desired: dict[str, str]) -> None:
    """Wait until the Nodes have these delays."""
    async with asyncio.timeout(PATIENCE):
        while await delays(client) != desired:
            await client.get_raw("/version")
