"""The original's gardenlet, deployed from a Gardenlet, registers its Seed in a running Garden.

The operator runs as a whole process. Gardener's API server, controller manager, admission
controller and gardenlet are programs of the original, and so is the chart of gardenlet.
"""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from pergola.api.kinds import CSR, NAMESPACE, SECRET, SEED
from pergola.api.objects import JsonObject, Key, annotations_of, map_at, uid_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.charts import ChartReference
from pergola.kube.client import Client
from pergola.operator.conditions import is_true
from pergola.operator.gardenlet.names import GARDENLET, TARGET
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.sandbox import binaries
from pergola.sandbox.on_demand import GARDENER_CONTROL_PLANE, GARDENLET_CHART, HELM
from pergola.sandbox.on_demand import GARDENLET as GARDENLET_PROGRAM
from pergola.sandbox.process_node import NodeSettings
from pergola.sandbox.registry import Registry
from pergola.sandbox.simulated import Site, SiteSettings, garden_site
from pergola.testing.waiting import until
from tests.support.garden_states import has_succeeded
from tests.support.garden_world import example, install_operator, operator
from tests.support.gardenlets import VERSION, gardenlet
from tests.support.seeds import SPEC, register_provider

pytestmark = [pytest.mark.soak("outages"), pytest.mark.timeout(1500)]

LOCAL: Final = Key("", "local")
NAME: Final = "local"
PATIENCE: Final = 600.0
READY: Final = "GardenletReady"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """Yield a runtime cluster that runs programs of the original."""
    name = f"seed-{os.getpid()}-{secrets.token_hex(3)}"
    node = NodeSettings(namespace="garden", more=(*GARDENER_CONTROL_PLANE, GARDENLET_PROGRAM))
    async with garden_site(name, settings=SiteSettings(node=node)) as found:
        yield found


async def test_the_original_gardenlet_registers_its_seed(
    site: Site, charts: Registry, tmp_path: Path
) -> None:
    client = site.client
    parts = await asyncio.to_thread(lambda: binaries.find((HELM, GARDENLET_CHART)))
    chart = await charts.push(parts[GARDENLET_CHART], "1.150.0")
    cache = {"PERGOLA_HELM": str(parts[HELM]), "PERGOLA_CHART_CACHE": str(tmp_path / "cache")}
    kubeconfig = await install_operator(site)
    environment = {**site.operator_environment, **cache}
    async with operator(kubeconfig, environment, reach=site.reach):
        await client.create(example())
        await until(client, GARDEN, LOCAL, has_succeeded, patience=PATIENCE)
        async with VirtualCluster(client, reach=site.reach) as access:
            await _is_registered(site, await access.client(), chart)


async def _is_registered(site: Site, virtual: Client, chart: ChartReference) -> None:
    """Check that the Seed exists, and that its gardenlet becomes ready and updates itself."""
    await register_provider(virtual)
    settings = {"seedConfig": {"spec": SPEC}}
    deployment = {"replicaCount": 1}
    await virtual.create(gardenlet(NAME, chart, config=settings, deployment=deployment))

    await until(virtual, SEED, Key("", NAME), is_ready, patience=PATIENCE)
    found = await until(
        virtual,
        GARDENLET,
        Key("garden", NAME),
        lambda it: is_true(it, "SeedRegistered") and is_true(it, "GardenletReconciled"),
        patience=PATIENCE,
    )
    assert annotations_of(found)[TARGET] == uid_of(
        await site.client.get(NAMESPACE, Key("", "kube-system"))
    )
    (request,) = await virtual.list(CSR)
    assert request["spec"]["username"].startswith("system:bootstrap:")
    assert await site.client.find(SECRET, Key("garden", "gardenlet-kubeconfig")) is not None


def is_ready(seed: JsonObject) -> bool:
    """Return whether the controller manager sees gardenlet, and gardenlet reconciles the Seed."""
    version = map_at(seed, "status", "gardener").get("version")
    return is_true(seed, READY) and version == VERSION
