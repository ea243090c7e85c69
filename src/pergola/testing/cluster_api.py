"""InfraCluster kinds of both contract generations, as small as the contract allows (spec 50 §4.1).

For tests of whoever reads or fills InfraClusters. `OldCluster` follows the contract v1beta1,
`NewCluster` v1beta2; both store their own API version of that name.
"""

import asyncio
from typing import Final

from pergola.api.cluster_api import (
    CLUSTER,
    INFRASTRUCTURE_GROUP,
    contract_label,
    crd_name,
)
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, ApiError, NotFound, UnknownKind
from pergola.testing.objects import definition

OLD: Final = GroupVersionKind(INFRASTRUCTURE_GROUP, "v1beta1", "OldCluster")
NEW: Final = GroupVersionKind(INFRASTRUCTURE_GROUP, "v1beta2", "NewCluster")
_READY_SECONDS: Final = 30.0


def infra_cluster_crd(gvk: GroupVersionKind) -> JsonObject:
    """The CRD of a kind whose API version has the name of its contract."""
    crd = _crd(gvk)
    crd["metadata"]["labels"] = {contract_label(gvk.version): gvk.version}
    return crd


def cluster_crd() -> JsonObject:
    """A Cluster CRD without a schema, for tests that run without Cluster API's own controllers."""
    return _crd(CLUSTER)


async def install(client: Client, *crds: JsonObject) -> None:
    """Installs CRDs that are not there yet; returns when their kinds are served."""
    for crd in crds:
        try:
            await client.create(crd)
        except AlreadyExists:
            continue
    async with asyncio.timeout(_READY_SECONDS):
        for crd in crds:
            await _served(client, crd)


def cluster(name: str, namespace: str, infra: GroupVersionKind, **spec: object) -> JsonObject:
    """A Cluster whose infrastructure is an object of the same name."""
    return {
        "apiVersion": CLUSTER.api_version,
        "kind": CLUSTER.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "infrastructureRef": {"apiGroup": infra.group, "kind": infra.kind, "name": name},
            **spec,
        },
    }


def infra_cluster(
    gvk: GroupVersionKind,
    name: str,
    namespace: str,
    annotations: dict[str, str] | None = None,
    **spec: object,
) -> JsonObject:
    """An InfraCluster that belongs to the Cluster of its name."""
    return {
        "apiVersion": gvk.api_version,
        "kind": gvk.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": annotations or {},
            "labels": {"cluster.x-k8s.io/cluster-name": name},
        },
        "spec": spec,
    }


def _crd(gvk: GroupVersionKind) -> JsonObject:
    crd = definition(gvk)
    if crd["metadata"]["name"] != crd_name(gvk.group_kind):
        raise AssertionError("core would not find a kind of this name")
    crd["spec"]["versions"][0]["subresources"] = {"status": {}}
    return crd


async def _served(client: Client, crd: JsonObject) -> None:
    """Returns when the kind is served; a CRD that was just established may answer 429."""
    spec = crd["spec"]
    gvk = GroupVersionKind(spec["group"], spec["versions"][0]["name"], spec["names"]["kind"])
    while True:
        try:
            await client.get(gvk, Key("default", "none"))
        except NotFound:
            return
        except (UnknownKind, ApiError):
            client.discovery.forget(gvk)
            await client.get_raw("/version")
