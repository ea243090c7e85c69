from typing import Any

from pergola.api.objects import JsonObject
from pergola.testing.capi_contract.writes import foreign_writes

CLUSTER = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "demo", "uid": "u"}


def state(version: int, *managers: str, **parts: Any) -> JsonObject:
    metadata = {
        "name": "demo",
        "resourceVersion": str(version),
        "managedFields": [{"manager": manager} for manager in managers],
        **parts.pop("metadata", {}),
    }
    return {"metadata": metadata, **parts}


def test_foreign_writes_are_reported_with_paths_and_names() -> None:
    states = [
        state(1, "test", spec={}),
        state(2, "test", "provider", spec={}, metadata={"finalizers": ["x"]}),
        state(3, "test", "provider", spec={}, status={"a": 1}, metadata={"finalizers": ["x"]}),
        state(4, "test", "tool", spec={}, status={"a": 2, "b": 1}, metadata={"finalizers": ["x"]}),
    ]
    assert [str(write) for write in foreign_writes(states, {"1"})] == [
        '"provider" changed metadata.finalizers',
        "somebody changed status",
        '"tool" changed status.a, status.b',
    ]


def test_our_own_writes_do_not_count() -> None:
    states = [state(1, spec={}), state(2, spec={"a": 1}), state(3, spec={"a": 2})]
    assert foreign_writes(states, {"1", "2", "3"}) == []
    assert [write.paths for write in foreign_writes(states, {"1", "3"})] == [("spec.a",)]


def test_links_set_by_the_core_do_not_count() -> None:
    links = {"ownerReferences": [CLUSTER], "labels": {"cluster.x-k8s.io/cluster-name": "demo"}}
    states = [state(1), state(2, "cluster-api-manager", metadata=links)]
    assert foreign_writes(states, {"1"}) == []


def test_owners_and_labels_of_others_count() -> None:
    linked = {"ownerReferences": [CLUSTER, {**CLUSTER, "kind": "AWSCluster"}]}
    states = [
        state(1),
        state(2, metadata=linked),
        state(3, metadata={**linked, "labels": {"a": ""}}),
    ]
    assert [write.paths for write in foreign_writes(states, {"1"})] == [
        ("metadata.ownerReferences",),
        ("metadata.labels.a",),
    ]


def test_the_start_of_a_deletion_does_not_count() -> None:
    states = [
        state(1, metadata={"finalizers": ["hold"]}),
        state(2, metadata={"finalizers": ["hold"], "deletionTimestamp": "now", "generation": 2}),
    ]
    assert foreign_writes(states, {"1"}) == []
