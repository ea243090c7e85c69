"""An Extension through the whole life of a Garden, whose virtual cluster has a real Gardener API.

The operator is the whole process, with the permissions of its chart.
"""

import asyncio
from pathlib import Path
from typing import Final

import pytest

from pergola.api.kinds import CONFIG_MAP, NAMESPACE
from pergola.api.objects import JsonObject, Key, map_at
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api.kinds import EXTENSION as USED
from pergola.kube.client import Client
from pergola.manifests import manifest
from pergola.operator.extension.installations import REGISTRATION
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.sandbox import binaries
from pergola.sandbox.on_demand import HELM
from pergola.sandbox.simulated import Site
from pergola.testing.chart_files import write_chart
from pergola.testing.extension_garden import ExtensionGarden
from pergola.testing.garden_extensions import garden_actuator, garden_unit
from pergola.testing.garden_world import CONFIRMED, example, install_operator, operator
from pergola.testing.registry import TestRegistry
from pergola.testing.shared import require_images
from pergola.testing.waiting import running, until, until_gone

pytestmark = pytest.mark.timeout(2400)

LOCAL: Final = Key("", "local")
NAME: Final = Key("", "probe")
SPACE: Final = Key("", "runtime-extension-probe")
RESOURCE: Final = Key("garden", "extension-probe-garden")
PATIENCE: Final = 600.0


@pytest.fixture(autouse=True)
def gardener() -> None:
    require_images("gardener-apiserver")


def extension(chart: str) -> JsonObject:
    """Return an Extension that every Garden uses."""
    served = {
        "kind": "Extension",
        "type": "probe",
        "clusterCompatibility": ["garden", "shoot"],
        "autoEnable": ["garden"],
    }
    deployment = {"extension": {"helm": {"ociRepository": {"ref": chart}}}}
    spec = {"resources": [served], "deployment": deployment}
    return manifest(EXTENSION.api_version, EXTENSION.kind, NAME.name, spec=spec)


async def test_an_extension_is_there_as_long_as_the_garden_needs_it(
    garden_world: Site, charts: TestRegistry, tmp_path: Path
) -> None:
    client = garden_world.client
    chart = await charts.push(write_chart(tmp_path))
    kubeconfig = await install_operator(garden_world)
    helm = await asyncio.to_thread(lambda: binaries.find((HELM,))[HELM])
    cache = {"PERGOLA_HELM": str(helm), "PERGOLA_CHART_CACHE": str(tmp_path / "cache")}
    environment = {**garden_world.operator_environment, **cache}
    actuator = garden_actuator(USED, "probe")
    async with operator(kubeconfig, environment, reach=garden_world.reach):
        await client.create(extension(str(chart)))
        await client.create(example())
        await until(client, MANAGED_RESOURCE, RESOURCE, any_state, patience=PATIENCE)
        # The kind of its resources is defined by now.
        async with running(garden_unit(client, actuator)):
            await until(client, GARDEN, LOCAL, has_succeeded, patience=PATIENCE)
            await _is_installed(ExtensionGarden(client, client))
            await _is_registered(garden_world, client)
            await _goes(client)


def any_state(_: JsonObject) -> bool:
    return True


def has_succeeded(obj: JsonObject) -> bool:
    operation = map_at(obj, "status", "lastOperation")
    return (operation.get("state"), operation.get("progress")) == ("Succeeded", 100)


async def _is_installed(garden: ExtensionGarden) -> None:
    required = await garden.condition("probe", "RequiredRuntime", "True")
    assert required["message"] == "Extension required for kinds [Extension]"
    await garden.condition("probe", "RuntimeHealthy", "True")
    await garden.condition("probe", "Installed", "True", "ReconcileSuccessful")
    await garden.condition("probe", "RequiredVirtual", "False", "NoRequiredControllerInstallation")
    await garden.runtime.get(CONFIG_MAP, Key(SPACE.name, "probe"))
    await until(garden.runtime, USED.gvk, Key("garden", "garden-probe"), has_succeeded)


async def _is_registered(site: Site, client: Client) -> None:
    async with VirtualCluster(client, reach=site.reach) as virtual:
        found = await until(await virtual.client(), REGISTRATION, NAME, any_state)
    [resource] = found["spec"]["resources"]
    assert resource["clusterCompatibility"] == ["shoot"]
    assert not resource.get("autoEnable")


async def _goes(client: Client) -> None:
    """The Extension goes after the last resource that it serves; the object itself stays."""
    await client.patch(GARDEN, LOCAL, CONFIRMED)
    await client.delete(GARDEN, LOCAL)
    await until_gone(client, GARDEN, LOCAL, patience=PATIENCE)
    garden = ExtensionGarden(client, client)
    await garden.condition("probe", "Installed", "False", "DeleteSuccessful")
    await garden.condition("probe", "RequiredVirtual", "False", "GardenDeleted")
    await garden.condition("probe", "RequiredRuntime", "False", "ExtensionNotRequired")
    assert await client.find(NAMESPACE, SPACE) is None
    await client.delete(EXTENSION, NAME)
    await until_gone(client, EXTENSION, NAME)
