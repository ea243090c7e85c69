"""Pergola's own image: the resource manager from its chart, as pods."""

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key, maps_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.testing.waiting import until

pytestmark = pytest.mark.node

CONTENT = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: from-a-pod, namespace: default}
data: {key: value}
"""


def all_are_true(obj: JsonObject) -> bool:
    conditions = {c["type"]: c["status"] for c in maps_at(obj, "status", "conditions")}
    return [conditions.get(f"Resources{name}") for name in ("Applied", "Healthy")] == ["True"] * 2


@pytest.mark.usefixtures("running_manager")
async def test_the_resource_manager_from_its_chart_applies_objects(node_client: Client) -> None:
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
