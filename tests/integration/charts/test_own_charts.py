"""A real API server accepts every object of our charts."""

import asyncio

import pytest

from pergola.api.kinds import CRD
from pergola.api.objects import JsonObject, map_at, name_of
from pergola.kube.client import Client
from pergola.sandbox.helm import render
from tests.support.charts import ALL_CHARTS, OPERATOR, ChartCase, with_image

CHARTS = [chart for chart in ALL_CHARTS if chart is not OPERATOR]  # its objects are installed
SWITCHED_ON: JsonObject = {
    "networkPolicy": {"enabled": True, "metricsFrom": [{"namespaceSelector": {}}]}
}


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
async def test_the_api_server_accepts_every_object_of_a_chart(
    chart: ChartCase, cluster_client: Client, namespace: str
) -> None:
    values = SWITCHED_ON if chart.has_pods else _of_account(namespace)
    found = await asyncio.to_thread(render, chart.folder, with_image(values), namespace=namespace)

    assert found
    for obj in found:
        if obj["kind"] == CRD.kind:  # it has a fixed name, and is served already
            continue
        await cluster_client.create(_unique(obj, namespace), dry_run=True)


def _unique(obj: JsonObject, namespace: str) -> JsonObject:
    """Return an object without a namespace under a name that no other test uses."""
    metadata = map_at(obj, "metadata")
    if "namespace" in metadata:
        return obj
    return {**obj, "metadata": {**metadata, "name": f"{name_of(obj)}-{namespace}"}}


def _of_account(namespace: str) -> JsonObject:
    """Return the values of a chart that grants permissions to an account in another cluster."""
    account = {"name": "admission", "namespace": namespace}
    return {"namespace": namespace, "gardener": {"virtualCluster": {"serviceAccount": account}}}
