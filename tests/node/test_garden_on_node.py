"""A Garden on a real node, as `pergola up` creates it, survives failures and is deleted.

The operator runs from its chart, and everything else as pods, with the control plane of Gardener.
"""

import asyncio
import os
import signal
import sys
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from pergola.api.kinds import CRD, DEPLOYMENT, NAMESPACE, POD
from pergola.api.objects import JsonObject, Key, name_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import Sandbox, find
from pergola.sandbox.components import APISERVER
from pergola.sandbox.images.catalogue import GARDEN_IMAGES
from pergola.testing.shared import require_images, require_node
from pergola.testing.waiting import until, until_gone
from tests.support.garden_states import is_healthy, reconciled_after
from tests.support.garden_world import (
    CONFIRMED,
    RECONCILE,
    contents,
    managed_secrets,
)

pytestmark = [pytest.mark.node, pytest.mark.soak("node-garden"), pytest.mark.timeout(2400)]

PERGOLA: Final = Path(sys.executable).parent / "pergola"
LOCAL: Final = Key("", "local")
PATIENCE: Final = 900.0
OUTAGE: Final = 60.0
ETCD_POD: Final = Key("garden", "virtual-garden-etcd-main-0")
API_SERVERS: Final = "app=kubernetes,role=apiserver"


@pytest.fixture(autouse=True)
def requirements() -> None:
    require_node()
    require_images(*GARDEN_IMAGES)


async def test_a_garden_on_a_real_node_comes_up_survives_failures_and_is_deleted() -> None:
    async with brought_up() as (sandbox, printed):
        for text in ("1/2 A Garden comes up", "Succeeded", "restored after"):
            assert text in printed
        async with Client.connect(load(sandbox.kubeconfig)) as client:
            await serves(sandbox)
            await survives_failures(sandbox, client)
            await is_deleted(client)


@asynccontextmanager
async def brought_up() -> AsyncGenerator[tuple[Sandbox, str]]:
    """Run `pergola up` until it has shown everything, and interrupt it when the block ends."""
    name = f"up-{uuid.uuid4().hex[:8]}"
    process = await asyncio.create_subprocess_exec(
        *(PERGOLA, "up", "--only", "garden", "--name", name),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert process.stdout is not None
    lines: list[str] = []
    try:
        async for line in process.stdout:
            lines.append(line.decode())
            if "Everything keeps running" in lines[-1]:
                break
        printed = "".join(lines)
        sandbox = find(f"{name}-garden")
        assert sandbox is not None, printed
        yield sandbox, printed
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        await process.communicate()
    assert await process.wait() == 0
    assert find(f"{name}-garden") is None


async def serves(sandbox: Sandbox) -> None:
    """Check that the virtual cluster answers through the gateway and has the kinds of Gardener."""
    async with Client.connect(load(sandbox.directory / "virtual.kubeconfig")) as virtual:
        namespaces = {name_of(each) for each in await virtual.list(NAMESPACE)}
        answer = await virtual.get_raw("/apis/core.gardener.cloud/v1beta1/projects")
    assert {"garden", "gardener-system-public"} <= namespaces
    assert b"ProjectList" in answer


async def survives_failures(sandbox: Sandbox, client: Client) -> None:
    """Kill an etcd and a virtual API server, and stop the runtime cluster's API server for a while.

    No credential is generated again.
    """
    before, last = await contents(client), await client.get(GARDEN, LOCAL)
    etcd = await client.get(POD, ETCD_POD)
    [server, *_] = await client.list(POD, "garden", labels=API_SERVERS)
    await client.patch(GARDEN, LOCAL, RECONCILE)
    for pod in (etcd, server):
        await client.delete(POD, Key.of(pod), uid=pod["metadata"]["uid"])
    await sandbox.kill(APISERVER)
    await asyncio.sleep(OUTAGE)  # the time without an API server is the test
    await sandbox.restart(APISERVER)

    await until(client, POD, ETCD_POD, lambda it: is_ready_instead_of(it, etcd), patience=PATIENCE)
    await until(client, GARDEN, LOCAL, reconciled_after(last), patience=PATIENCE)
    await until(client, GARDEN, LOCAL, is_healthy, patience=PATIENCE)
    after = await contents(client)
    secrets = {name: each for name, each in before.items() if name.startswith("Secret ")}
    assert {name: after.get(name) for name in secrets} == secrets


async def is_deleted(client: Client) -> None:
    """Check that a deletion keeps the operator and the volumes, which belong to the user."""
    await client.patch(GARDEN, LOCAL, CONFIRMED)
    await client.delete(GARDEN, LOCAL)
    await until_gone(client, GARDEN, LOCAL, patience=PATIENCE)
    assert await managed_secrets(client) == []
    deployments = {name_of(each) for each in await client.list(DEPLOYMENT, "garden")}
    assert deployments == {"gardener-operator"}
    definitions = {name_of(each) for each in await client.list(CRD)}
    assert "etcds.druid.gardener.cloud" not in definitions


def is_ready_instead_of(pod: JsonObject, old: JsonObject) -> bool:
    conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", [])}
    return pod["metadata"]["uid"] != old["metadata"]["uid"] and conditions.get("Ready") == "True"
