"""`pergola sandbox status` of a sandbox with a real node."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from pergola.api.kinds import POD
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.sandbox import Sandbox
from pergola.testing.waiting import until
from tests.support.node_workloads import ETCD, etcd_pod, is_ready

pytestmark = pytest.mark.node

PERGOLA = Path(sys.executable).with_name("pergola")


async def test_the_status_shows_the_node_and_its_pods_with_their_images(
    node_sandbox: Sandbox, node_client: Client, node_namespace: str
) -> None:
    unknown = "registry.example.com/no/such:v1"
    await node_client.create(etcd_pod(node_namespace))
    await node_client.create(etcd_pod(node_namespace, "hopeless", unknown))
    await until(node_client, POD, Key(node_namespace, "etcd"), is_ready)
    await until(node_client, POD, Key(node_namespace, "hopeless"), waits_for_its_image)

    process = await asyncio.create_subprocess_exec(
        PERGOLA, "sandbox", "status", "--name", node_sandbox.name, stdout=PIPE
    )
    output, _ = await process.communicate()
    shown = output.decode().splitlines()

    assert process.returncode == 0
    assert any(line.split()[:2] == ["kubelet", "running"] for line in shown)
    assert any(line.startswith('node "node": Ready (kubelet v1.') for line in shown)
    pods = {words[0]: words[1:] for line in shown if len(words := line.split()) == 3}
    assert pods[f"{node_namespace}/etcd"] == ["Running", ETCD]
    assert pods[f"{node_namespace}/hopeless"] == ["ErrImageNeverPull", unknown]


def waits_for_its_image(pod: JsonObject) -> bool:
    return "ErrImageNeverPull" in str(pod["status"])
