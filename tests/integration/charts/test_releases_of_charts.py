"""Helm upgrades releases of the previous charts, rolls them back, and removes them.

No node runs their pods: tests/node has the same with processes.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from pergola.api.kinds import CRD, DEPLOYMENT, NAMESPACE, POD
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, name_of
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden
from pergola.kube.kubeconfig import load
from pergola.sandbox import API_ONLY, Sandbox
from pergola.sandbox.helm import helm
from pergola.testing.shared import private
from pergola.testing.waiting import until_gone
from tests.support.charts import ALL_CHARTS, ChartCase, with_image
from tests.support.previous_chart import previous_chart

pytestmark = pytest.mark.timeout(600)  # Helm may have to be built

WITH_PODS: Final = [chart for chart in ALL_CHARTS if chart.has_pods]
RELEASED: Final = [
    chart
    for chart in WITH_PODS
    if chart.name in ("operator", "networking-cilium", "extension-admission-runtime")
]
"""Charts with definitions, with webhooks, and without a test on a node."""
CHANGED: Final = with_image({"podLabels": {"team": "a"}, "extraArgs": ["--log-level=debug"]})


def by_name(chart: ChartCase) -> str:
    return chart.name


@pytest.fixture(scope="module")
def alone() -> Iterator[Sandbox]:
    """Yield an API server without definitions, whose cluster-scoped names no other test uses."""
    with private(API_ONLY) as sandbox:
        yield sandbox


@pytest.fixture
async def client(alone: Sandbox) -> AsyncIterator[Client]:
    async with Client.connect(load(alone.kubeconfig)) as client:
        yield client


@pytest.mark.parametrize("chart", RELEASED, ids=by_name)
async def test_a_release_is_upgraded_rolled_back_and_removed(
    alone: Sandbox, client: Client, chart: ChartCase, tmp_path: Path
) -> None:
    where = ("--namespace", chart.namespace, "--kubeconfig", str(alone.kubeconfig))
    previous = await asyncio.to_thread(previous_chart, chart.name, tmp_path)

    async def run(*arguments: str, values: JsonObject | None = None) -> None:
        await asyncio.to_thread(helm, *arguments, *where, values=values)

    await run("install", "it", str(previous), "--create-namespace", values=with_image())
    await run("upgrade", "it", str(chart.folder), values=CHANGED)
    found = {(GroupVersionKind.of(obj), Key.of(obj)) for obj in chart.rendered(CHANGED)}
    assert {each for each in found if not await client.find(*each)} == set()
    await run("rollback", "it", "1")
    await run("rollback", "it", "2")
    [workload] = await client.list(DEPLOYMENT, chart.namespace)
    labels = map_at(workload, "spec", "template", "metadata", "labels")
    assert labels["team"] == "a"

    await run("uninstall", "it")
    for gvk, key in found:
        if gvk != CRD:
            await until_gone(client, gvk, key)
    definitions = {key for gvk, key in found if gvk == CRD}
    assert {key for key in definitions if not await client.find(CRD, key)} == set()


@pytest.mark.parametrize("chart", WITH_PODS, ids=by_name)
async def test_pods_are_admitted_to_a_restricted_namespace(
    client: Client, chart: ChartCase
) -> None:
    name = f"restricted-{chart.name}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata: JsonObject = {"name": name, "labels": labels}
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    account: JsonObject = {"name": "default", "namespace": name}
    await client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    objects = await asyncio.to_thread(chart.rendered)
    [workload] = [obj for obj in objects if obj["kind"] == DEPLOYMENT.kind]
    pod = {**map_at(workload, "spec", "template", "spec"), "serviceAccountName": "default"}
    pod.pop("priorityClassName", None)
    manifest: JsonObject = {
        "apiVersion": POD.api_version,
        "kind": POD.kind,
        "metadata": {"name": name_of(workload), "namespace": name},
        "spec": pod,
    }

    await client.create(manifest, dry_run=True)

    privileged = {**pod, "hostNetwork": True}
    with pytest.raises(Forbidden, match="violates PodSecurity"):
        await client.create({**manifest, "spec": privileged}, dry_run=True)
    await client.delete(NAMESPACE, Key("", name))
