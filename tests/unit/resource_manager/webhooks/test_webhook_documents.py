"""Lookups in manifests."""

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.resource_manager.webhooks.documents import DocumentLookups, Unanswered
from pergola.resource_manager.webhooks.facts.taints import Taint

NETWORK = GroupVersionKind("extensions.gardener.cloud", "v1alpha1", "Network")


def manifest(kind: str, name: str, namespace: str | None = "shoot", **fields: object) -> JsonObject:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}


async def test_service_accounts_are_found_by_namespace_and_name() -> None:
    lookups = DocumentLookups(
        [
            manifest("ServiceAccount", "a", automountServiceAccountToken=False),
            manifest("ServiceAccount", "a", "other"),
            manifest("ServiceAccount", "b", None, automountServiceAccountToken=False),
        ],
        namespace="here",
    )
    assert await lookups.mounts_token(Key("shoot", "a")) is False
    assert await lookups.mounts_token(Key("other", "a")) is True
    assert await lookups.mounts_token(Key("here", "b")) is False


async def test_missing_objects_are_reported_with_advice() -> None:
    lookups = DocumentLookups([])
    for found in (
        lookups.mounts_token(Key("shoot", "a")),
        lookups.config_map(Key("shoot", "a")),
        lookups.service(Key("shoot", "a")),
    ):
        with pytest.raises(Unanswered, match="shoot/a is in none of the files; add it"):
            await found


async def test_a_cluster_is_used_for_objects_without_manifests() -> None:
    node = manifest("Node", "n", None, spec={"taints": [{"key": "x", "effect": "NoSchedule"}]})
    cluster = DocumentLookups(
        [
            manifest("ServiceAccount", "a", automountServiceAccountToken=False),
            manifest("ConfigMap", "c", data={"from": "cluster"}),
            manifest("Service", "s", spec={}),
            node,
            manifest("Network", "n") | {"apiVersion": NETWORK.api_version},
        ]
    )
    lookups = DocumentLookups([manifest("ConfigMap", "c", data={"from": "file"})], cluster)
    assert await lookups.mounts_token(Key("shoot", "a")) is False
    assert (await lookups.config_map(Key("shoot", "c")))["data"] == {"from": "file"}
    assert (await lookups.service(Key("shoot", "s")))["kind"] == "Service"
    assert await lookups.system_taints() == [Taint("x", "", "NoSchedule")]
    assert len(await lookups.objects(NETWORK, "shoot", "")) == 1


async def test_only_nodes_for_system_components_are_used() -> None:
    def node(name: str, pool: str, key: str) -> JsonObject:
        taints = [{"key": key, "value": "1", "effect": "NoSchedule"}]
        found = manifest("Node", name, None, spec={"taints": taints})
        found["metadata"]["labels"] = {"pool": pool}
        return found

    nodes = [node("a", "system", "x"), node("b", "other", "y"), node("c", "system", "x")]
    lookups = DocumentLookups(nodes, system_nodes={"pool": "system"})
    assert await lookups.system_taints() == [Taint("x", "1", "NoSchedule")]
    assert len(await DocumentLookups(nodes).system_taints()) == 2
    assert await DocumentLookups([]).system_taints() == []


async def test_collections_are_selected_by_namespace_and_labels() -> None:
    objects = [manifest("Network", name, namespace) for name, namespace in ("aa", "ab", "bc")]
    for obj in objects:
        obj["apiVersion"] = NETWORK.api_version
    objects[0]["metadata"]["labels"] = {"x": "y"}
    lookups = DocumentLookups(objects)
    assert len(await lookups.objects(NETWORK, "", "")) == 3
    assert await lookups.objects(NETWORK, "b", "") == [objects[1]]
    assert await lookups.objects(NETWORK, "", "x=y") == [objects[0]]
    other = NETWORK._replace(kind="Worker")
    assert await lookups.objects(other, "", "") == []
