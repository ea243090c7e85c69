"""Helm installs, upgrades and removes the operator's chart in a real cluster (spec 20 §2)."""

import asyncio
import shlex
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from pergola.api.kinds import CONFIG_MAP, CRD, DEPLOYMENT
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    labels_of,
    name_of,
    resource_version_of,
    uid_of,
)
from pergola.api.operator_v1alpha1 import GARDEN, garden_crd
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import Sandbox
from pergola.sandbox.helm import helm, render
from tests.support.charts import with_image
from tests.support.documented import commands
from tests.support.gardens import MINIMAL
from tests.support.operator_chart import OperatorChart
from tests.support.strict_client import StrictClient

CHART: Final = Path(__file__).parents[3] / "charts" / "operator"
GUIDE: Final = "how-to/operating-a-garden.md"
RELEASE: Final = "gardener-operator"
EVERYTHING: Final[JsonObject] = {
    "replicaCount": 2,
    "podAnnotations": {"note": "a"},
    "podLabels": {"team": "a"},
    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["api.example.org"]}],
    "env": [{"name": "WEBHOOK_MODE", "value": "service"}],
    "additionalVolumes": [{"name": "more", "emptyDir": {}}],
    "additionalVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    "imageVectorOverwrite": "images: []\n",
    "componentImageVectorOverwrites": "components: []\n",
    "chartsImageVectorOverwrite": "charts: []\n",
    "config": {"runtimeClientConnection": {"kubeconfig": "apiVersion: v1\nkind: Config\n"}},
}
Upgrade: TypeAlias = Callable[[JsonObject], Coroutine[None, None, None]]


@pytest.fixture
async def upgrade(runtime: Client, garden_sandbox: Sandbox) -> AsyncIterator[Upgrade]:
    """Install the chart with values, or upgrade it; it is removed after the test."""
    common = ("--namespace", "garden", "--kubeconfig", str(garden_sandbox.kubeconfig))

    async def run(values: JsonObject) -> None:
        # Other tests of this cluster leave the permissions of the chart.
        command = ("upgrade", "--install", "--take-ownership", RELEASE, str(CHART))
        await asyncio.to_thread(helm, *command, *common, values=with_image(values))

    yield run
    await asyncio.to_thread(helm, "uninstall", RELEASE, "--ignore-not-found", *common)


async def live(client: Client, objects: list[JsonObject]) -> list[JsonObject | None]:
    keys = [(GroupVersionKind.of(obj), Key.of(obj)) for obj in objects]
    return [await client.find(gvk, key) for gvk, key in keys]


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["default", "everything"])
async def test_the_api_server_knows_every_field_of_the_chart(
    garden_sandbox: Sandbox, values: JsonObject
) -> None:
    async with StrictClient.connect(load(garden_sandbox.kubeconfig)) as client:
        for obj in render(CHART, with_image(values)):
            await client.apply(obj, manager="test", force=True)


async def test_an_installation_has_the_objects_of_the_chart(
    runtime: Client, upgrade: Upgrade
) -> None:
    await upgrade(EVERYTHING)

    found = await live(runtime, render(CHART, with_image(EVERYTHING)))

    assert None not in found
    # The sandbox has installed the definitions.
    of_release = [obj for obj in found if obj and obj["kind"] != CRD.kind]
    assert {labels_of(obj)["app.kubernetes.io/managed-by"] for obj in of_release} == {"Helm"}


async def test_a_release_leaves_definitions_alone_until_they_are_marked_as_its_own(
    runtime: Client, upgrade: Upgrade
) -> None:
    key = Key("", name_of(garden_crd()))
    before = await runtime.get(CRD, key)

    await upgrade({})
    assert resource_version_of(await runtime.get(CRD, key)) == resource_version_of(before)

    label = {"app.kubernetes.io/managed-by": "Helm"}
    owner = {"release-name": RELEASE, "release-namespace": "garden"}
    marks = {f"meta.helm.sh/{name}": value for name, value in owner.items()}
    await runtime.patch(CRD, key, {"metadata": {"labels": label, "annotations": marks}})
    await upgrade({"replicaCount": 2})
    adopted = await runtime.get(CRD, key)
    assert annotations_of(adopted)["helm.sh/resource-policy"] == "keep"

    # The release gives it up, and does not delete it.
    gone: JsonObject = {"labels": dict.fromkeys(label), "annotations": dict.fromkeys(marks)}
    await runtime.patch(CRD, key, {"metadata": gone})
    await upgrade({})
    assert uid_of(await runtime.get(CRD, key)) == uid_of(before)


async def test_an_upgrade_without_a_change_writes_nothing(
    runtime: Client, upgrade: Upgrade
) -> None:
    objects = render(CHART, with_image())
    await upgrade({})
    before = await live(runtime, objects)

    await upgrade({})

    after = await live(runtime, objects)
    assert [resource_version_of(obj) for obj in after if obj] == [
        resource_version_of(obj) for obj in before if obj
    ]


@pytest.mark.soak("commands")
async def test_a_changed_configuration_replaces_its_config_map(
    runtime: Client, upgrade: Upgrade
) -> None:
    values: JsonObject = {"config": {"logLevel": "debug"}}
    names = [
        name_of(OperatorChart.rendered(CHART, each).named("gardener-operator-configmap-"))
        for each in ({}, values)
    ]
    await upgrade({})

    await upgrade(values)

    found = {name_of(obj) for obj in await runtime.list(CONFIG_MAP, "garden")}
    assert found & set(names) == {names[1]}
    deployment = await runtime.get(DEPLOYMENT, Key("garden", RELEASE))
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    assert names[1] in [volume.get("configMap", {}).get("name") for volume in volumes]


@pytest.mark.soak("commands")
async def test_uninstalling_keeps_the_definitions_and_the_garden(
    runtime: Client, garden_sandbox: Sandbox, upgrade: Upgrade
) -> None:
    await upgrade({})
    garden = await runtime.create(MINIMAL)
    where = ("--namespace", "garden", "--kubeconfig", str(garden_sandbox.kubeconfig))

    await asyncio.to_thread(helm, "uninstall", RELEASE, *where)

    assert await runtime.get(GARDEN, Key.of(garden)) == garden
    left = [obj for obj in await live(runtime, render(CHART, with_image())) if obj]
    assert {GroupVersionKind.of(obj) for obj in left} == {CRD}


@pytest.mark.soak("commands")
async def test_the_commands_of_the_guide_install_upgrade_and_remove_the_operator(
    runtime: Client, garden_sandbox: Sandbox
) -> None:
    deployed = Key("garden", RELEASE)

    async def run(line: str, *options: str) -> None:
        program, *words = shlex.split(line.replace("charts/operator", str(CHART)))
        assert program == "helm"
        where = ("--kubeconfig", str(garden_sandbox.kubeconfig))
        await asyncio.to_thread(helm, *words, *options, *where)

    # Other tests of this cluster leave the permissions of the chart.
    for line in commands(GUIDE, "Install"):
        await run(line, "--take-ownership")
    installed = await runtime.get(DEPLOYMENT, deployed)
    for line in commands(GUIDE, "Upgrade"):
        await run(line, "--take-ownership")
    assert (await runtime.get(DEPLOYMENT, deployed))["spec"] == installed["spec"]
    for line in commands(GUIDE, "Remove the operator"):
        await run(line)
    assert await runtime.find(DEPLOYMENT, deployed) is None
