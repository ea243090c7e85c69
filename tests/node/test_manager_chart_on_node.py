"""Helm adopts, upgrades, rolls back and removes the resource manager on a real node."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from pergola.admission.configurations import configuration_keys
from pergola.api.kinds import CONFIG_MAP, CRD, POD
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import Sandbox
from pergola.sandbox.helm import helm
from pergola.testing.waiting import until, until_gone
from tests.support.charts import RESOURCE_MANAGER, with_image
from tests.support.deployed_manager import MANAGER, install, recovered
from tests.support.previous_chart import previous_chart

pytestmark = [
    pytest.mark.soak("node"),
    pytest.mark.node,
    pytest.mark.timeout(900),
]  # Helm and the image may have to be built

WAIT: Final = ("--wait", "--timeout", "5m")
# A policy denies all traffic in the namespace that the chart does not allow.
ISOLATED: Final[JsonObject] = {"networkPolicy": {"enabled": True}}
DEFINITION: Final = Key("", "managedresources.resources.gardener.cloud")


def where(sandbox: Sandbox) -> tuple[str, ...]:
    return ("--namespace", MANAGER.namespace, "--kubeconfig", str(sandbox.kubeconfig))


async def adopt(sandbox: Sandbox, chart: Path) -> None:
    """Install a chart over the objects of other tests; its pods need not become ready."""
    command = ("install", "--take-ownership", MANAGER.name, str(chart))
    await asyncio.to_thread(helm, *command, *where(sandbox), values=with_image(ISOLATED))


async def upgrade(sandbox: Sandbox, values: JsonObject) -> None:
    """Upgrade to the chart, and return when all pods are ready."""
    command = ("upgrade", MANAGER.name, str(RESOURCE_MANAGER.folder), *WAIT)
    await asyncio.to_thread(helm, *command, *where(sandbox), values=with_image(values))


async def roll_back(sandbox: Sandbox, revision: int) -> None:
    """Return to a revision of the release, and return when all pods are ready."""
    command = ("rollback", MANAGER.name, str(revision), *WAIT)
    await asyncio.to_thread(helm, *command, *where(sandbox))


async def remove(sandbox: Sandbox) -> None:
    flags = ("--ignore-not-found", "--wait", *where(sandbox))
    await asyncio.to_thread(helm, "uninstall", MANAGER.name, *flags)


async def pods(client: Client) -> list[Key]:
    labels = f"app={MANAGER.name}"
    found = await client.list(POD, MANAGER.namespace, labels=labels, metadata_only=True)
    return [Key.of(pod) for pod in found]


@pytest.fixture
async def client(breakable_manager: Sandbox) -> AsyncIterator[Client]:
    """Yield a client of the node, and restore the installation of other tests at the end."""
    async with Client.connect(load(breakable_manager.kubeconfig)) as client:
        yield client
        await remove(breakable_manager)
        await install(client)


async def test_helm_adopts_upgrades_rolls_back_and_removes_the_resource_manager(
    breakable_manager: Sandbox, client: Client, tmp_path: Path
) -> None:
    previous = await asyncio.to_thread(previous_chart, RESOURCE_MANAGER.name, tmp_path)
    await adopt(breakable_manager, previous)
    await upgrade(breakable_manager, ISOLATED)
    await recovered(client)

    before = await pods(client)
    await upgrade(breakable_manager, {**ISOLATED, "config": {"logLevel": "debug"}})
    for pod in before:
        await until_gone(client, POD, pod)
    await recovered(client)
    await until(
        client, CONFIG_MAP, MANAGER, lambda obj: "logLevel: debug" in obj["data"]["config.yaml"]
    )

    await roll_back(breakable_manager, 2)
    await recovered(client)
    for gvk, key in configuration_keys(MANAGER.name):
        await until(client, gvk, key, lambda obj: bool(obj["webhooks"]))
    await remove(breakable_manager)
    for obj in await asyncio.to_thread(RESOURCE_MANAGER.rendered, ISOLATED):
        if obj["kind"] != CRD.kind:
            await until_gone(client, GroupVersionKind.of(obj), Key.of(obj))
    for gvk, key in configuration_keys(MANAGER.name):
        await until_gone(client, gvk, key)
    assert await client.find(CRD, DEFINITION)
