"""Pergola's own image: the resource manager from its chart, as pods."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pergola.api.kinds import CONFIG_MAP, DEPLOYMENT
from pergola.api.objects import JsonObject, Key, maps_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube import yaml
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists
from pergola.testing.node_workloads import is_ready
from pergola.testing.waiting import until

pytestmark = pytest.mark.node

CHARTS = Path(__file__).parents[2] / "charts"
FILES = (
    CHARTS / "crds" / "resources.gardener.cloud_managedresources.yaml",
    CHARTS / "resource-manager" / "rbac-target.yaml",
    CHARTS / "resource-manager" / "deployment.yaml",
)
CONTENT = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: from-a-pod, namespace: default}
data: {key: value}
"""


def manifests() -> Iterator[JsonObject]:
    for file in FILES:
        for document in yaml.parse_documents(file.read_text()):
            if isinstance(document.value, dict):
                yield document.value


def all_are_true(obj: JsonObject) -> bool:
    conditions = {c["type"]: c["status"] for c in maps_at(obj, "status", "conditions")}
    return [conditions.get(f"Resources{name}") for name in ("Applied", "Healthy")] == ["True"] * 2


async def test_the_resource_manager_runs_from_its_chart_and_applies(node_client: Client) -> None:
    garden: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden"}}
    await node_client.create(garden)
    for obj in manifests():
        try:
            await node_client.create(obj)
        except AlreadyExists:
            raise AssertionError(f"{obj['kind']} {Key.of(obj)} is in the charts twice") from None
    await until(
        node_client,
        DEPLOYMENT,
        Key("garden", "gardener-resource-manager"),
        is_ready,
        patience=100,
    )
    await node_client.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "content", "namespace": "garden"},
            "stringData": {"objects.yaml": CONTENT},
        }
    )
    await node_client.create(
        {
            "apiVersion": MANAGED_RESOURCE.api_version,
            "kind": MANAGED_RESOURCE.kind,
            "metadata": {"name": "content", "namespace": "garden"},
            "spec": {"secretRefs": [{"name": "content"}]},
        }
    )

    await until(node_client, MANAGED_RESOURCE, Key("garden", "content"), all_are_true)

    applied = await node_client.get(CONFIG_MAP, Key("default", "from-a-pod"))
    assert applied["data"] == {"key": "value"}
