"""Helm adopts, upgrades and removes the resource manager on a real node with its chart."""

import asyncio
from collections.abc import AsyncIterator
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
from tests.support.charts import RESOURCE_MANAGER
from tests.support.deployed_manager import MANAGER, install, recovered

pytestmark = [
    pytest.mark.soak("node"),
    pytest.mark.node,
    pytest.mark.timeout(900),
]  # Helm and the image may have to be built

# A policy denies all traffic in the namespace that the chart does not allow.
ISOLATED: Final[JsonObject] = {"networkPolicy": {"enabled": True}}
DEFINITION: Final = Key("", "managedresources.resources.gardener.cloud")


def where(sandbox: Sandbox) -> tuple[str, ...]:
    return ("--namespace", MANAGER.namespace, "--kubeconfig", str(sandbox.kubeconfig))


async def upgrade(sandbox: Sandbox, values: JsonObject) -> None:
    """Install or upgrade the chart, and return when all pods are ready."""
    command = ("upgrade", "--install", "--take-ownership", MANAGER.name)
    flags = ("--wait", "--timeout", "5m", *where(sandbox))
    chart = str(RESOURCE_MANAGER.folder)
    await asyncio.to_thread(helm, *command, chart, *flags, values=values)


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


async def test_helm_adopts_upgrades_and_removes_the_resource_manager(
    breakable_manager: Sandbox, client: Client
) -> None:
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

    for gvk, key in configuration_keys(MANAGER.name):
        await until(client, gvk, key, lambda obj: bool(obj["webhooks"]))
    await remove(breakable_manager)
    for obj in await asyncio.to_thread(RESOURCE_MANAGER.rendered, ISOLATED):
        await until_gone(client, GroupVersionKind.of(obj), Key.of(obj))
    assert await client.find(CRD, DEFINITION)
    for gvk, key in configuration_keys(MANAGER.name):
        assert await client.find(gvk, key), "the notes of the chart say how to delete it"
