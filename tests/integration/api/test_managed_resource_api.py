"""The ManagedResource API on a real API server (spec 10 §2)."""

from pathlib import Path

import orjson
import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE, ManagedResource
from pergola.api.schema import schema_of, validate
from pergola.cli.crds import definitions, install
from pergola.kube.client import Client
from pergola.kube.errors import Invalid

CRD = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
KEY = Key("", "managedresources.resources.gardener.cloud")
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


@pytest.fixture(autouse=True)
async def installed(cluster_client: Client) -> None:
    await install(cluster_client)


def managed_resource(namespace: str, spec: JsonObject) -> JsonObject:
    return {
        "apiVersion": MANAGED_RESOURCE.api_version,
        "kind": MANAGED_RESOURCE.kind,
        "metadata": {"namespace": namespace, "generateName": "mr-"},
        "spec": spec,
    }


async def test_the_api_server_finds_nothing_wrong_with_the_crd(cluster_client: Client) -> None:
    crd = await cluster_client.get(CRD, KEY)

    conditions = {c["type"]: c["status"] for c in maps_at(crd, "status", "conditions")}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    [version] = maps_at(crd, "spec", "versions")
    [declared] = definitions()[0]["spec"]["versions"]
    assert version["schema"] == declared["schema"]


async def test_installing_again_changes_nothing(cluster_client: Client) -> None:
    before = await cluster_client.get(CRD, KEY)

    await install(cluster_client)

    after = await cluster_client.get(CRD, KEY)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
