"""Life cycle of nodes: side by side, through faults, and without leftovers."""

import asyncio
import os
import re
import secrets
import signal
from pathlib import Path

import pytest

from pergola.api.kinds import NODE, POD, STATEFUL_SET
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import API_ONLY, WITH_NODE, Sandbox, start, stop
from pergola.sandbox.processes import ProcessId
from pergola.testing.shared import require_node
from pergola.testing.waiting import PATIENCE, until
from tests.support.machine import cgroups_of, traces
from tests.support.node_workloads import etcd_call, etcd_with_a_claim, is_ready

pytestmark = [pytest.mark.soak("node"), pytest.mark.node]

KEY = Key("default", "etcd-0")


def processes(sandbox: Sandbox) -> list[ProcessId]:
    """Return the first process and all processes in the node's namespaces."""
    state = sandbox.state()
    kubelet = state["components"]["kubelet"]["process"][0]
    namespace = Path(f"/proc/{kubelet}/ns/net").readlink()
    inside = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "ns" / "net").readlink() == namespace:
                    inside.append(ProcessId.of(int(entry.name)))
            except OSError:
                continue
    return [ProcessId(*state["supervisor"]), *(process for process in inside if process)]


async def test_a_node_and_its_pods_survive_faults_and_leave_nothing_when_stopped() -> None:
    require_node()
    before = traces()
    node = await start(f"life-{secrets.token_hex(4)}", components=WITH_NODE)
    try:
        of_node = processes(node)
        assert cgroups_of(node.directory)
        async with Client.connect(load(node.kubeconfig)) as client:
            await _survives_faults(node, client)
        of_node += processes(node)
    finally:
        await stop(node.name)

    assert not any(process.alive for process in of_node)
    assert not node.directory.exists()
    assert cgroups_of(node.directory) == []
    assert traces() == before


async def _survives_faults(node: Sandbox, client: Client) -> None:
    for obj in etcd_with_a_claim("default"):
        await client.create(obj)
    await until(client, STATEFUL_SET, Key("default", "etcd"), is_ready)
    pod = await client.get(POD, KEY)
    port = await node.forward("10.65.0.1", 10250)
    assert port
    etcd = await node.forward(pod["status"]["podIP"], 2379)
    await etcd_call(etcd, "put", {"key": "a2V5", "value": "dmFsdWU="})

    for component in ("kubelet", "containerd"):
        await node.kill(component)
        await node.restart(component)
    # The container was not restarted.
    found = await etcd_call(etcd, "range", {"key": "a2V5"})
    assert found["count"] == "1"

    started = _started(pod)
    await node.reboot()
    pod = await until(
        client,
        POD,
        KEY,
        lambda pod: is_ready(pod) and _started(pod) > started,
    )
    etcd = await node.forward(pod["status"]["podIP"], 2379)
    found = await etcd_call(etcd, "range", {"key": "a2V5"})
    assert [pair["value"] for pair in found["kvs"]] == ["dmFsdWU="]


def _started(pod: JsonObject) -> str:
    (container,) = pod["status"]["containerStatuses"]
    running: JsonObject = container["state"].get("running") or {}
    return str(running.get("startedAt", ""))


async def test_two_nodes_run_side_by_side_and_a_killed_one_leaves_nothing(
    node_sandbox: Sandbox,
) -> None:
    before = traces()
    other = await start(f"life-{secrets.token_hex(4)}", components=WITH_NODE)
    async with (
        Client.connect(load(node_sandbox.kubeconfig)) as first,
        Client.connect(load(other.kubeconfig)) as second,
    ):
        uids = [(await c.get(NODE, Key("", "node")))["metadata"]["uid"] for c in (first, second)]
    assert uids[0] != uids[1]
    of_other = processes(other)

    os.kill(of_other[0].pid, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE):
        while any(process.alive for process in of_other):  # noqa: ASYNC110 - they send no events
            await asyncio.sleep(0.02)
    following = await start(f"life-{secrets.token_hex(4)}", components=API_ONLY)
    await following.stop()

    assert not other.directory.exists()
    assert cgroups_of(other.directory) == []
    assert traces() == before


def test_a_node_cannot_reach_other_networks(node_sandbox: Sandbox) -> None:
    kubelet = node_sandbox.state()["components"]["kubelet"]["process"][0]

    routes = Path(f"/proc/{kubelet}/net/route").read_text().splitlines()[1:]
    interfaces = re.findall(
        r"^\s*(\w+):", Path(f"/proc/{kubelet}/net/dev").read_text(), re.MULTILINE
    )

    assert {line.split()[0][:4] for line in routes} == {"lo", "cali", "serv"}
    assert "00000000" not in {line.split()[1] for line in routes}
    assert {name.rstrip("0123456789abcdef") for name in interfaces} == {"lo", "cali", "services"}
