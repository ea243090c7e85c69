"""The InfraClusters that a provider ignores: spec 50 §1, §2."""

from typing import Any

import pytest

from pergola.api.cluster_api import MANAGED_BY
from pergola.api.objects import GroupKind, JsonObject, Key
from pergola.externally_managed.mapping import (
    cluster_to_infra_cluster,
    infrastructure_reference,
    owner_cluster,
)
from pergola.externally_managed.predicate import (
    has_watch_label,
    is_externally_managed,
    is_paused,
    manager_of,
    resource_externally_managed,
    resource_is_not_externally_managed,
)
from pergola.kube.errors import KubeError
from pergola.runtime.caching.cache import Change

KEY = Key("demo", "c")
KIND = GroupKind("infrastructure.cluster.x-k8s.io", "FooCluster")


def infra(annotations: Any = None, **metadata: Any) -> JsonObject:
    known: JsonObject = {"name": "c", "namespace": "demo", **metadata}
    if annotations is not None:
        known["annotations"] = annotations
    return {"apiVersion": f"{KIND.group}/v1", "kind": KIND.kind, "metadata": known}


MANAGED = [None, {}, {"other": "x"}, {"cluster.x-k8s.io/replicas-managed-by": "x"}]
EXTERNAL = [{MANAGED_BY: ""}, {MANAGED_BY: "x"}, {MANAGED_BY: "false"}]


@pytest.mark.parametrize("annotations", MANAGED)
def test_an_object_without_the_annotation_belongs_to_its_provider(annotations: Any) -> None:
    obj = infra(annotations)
    assert not is_externally_managed(obj)
    assert manager_of(obj) is None
    for event in (Change(KEY, None, obj), Change(KEY, obj, obj), Change(KEY, obj, None)):
        assert resource_is_not_externally_managed(event)


@pytest.mark.parametrize("annotations", EXTERNAL)
def test_an_object_with_the_annotation_is_ignored_whatever_the_value(
    annotations: JsonObject,
) -> None:
    obj = infra(annotations)
    assert is_externally_managed(obj)
    assert manager_of(obj) == annotations[MANAGED_BY]
    for event in (Change(KEY, None, obj), Change(KEY, obj, obj), Change(KEY, obj, None)):
        assert not resource_is_not_externally_managed(event)


def test_a_label_of_that_name_has_no_effect() -> None:
    assert not is_externally_managed(infra(labels={MANAGED_BY: "x"}))


def test_only_the_new_state_of_an_update_counts() -> None:
    mine, theirs = infra(), infra(EXTERNAL[1])
    assert resource_is_not_externally_managed(Change(KEY, theirs, mine))
    assert not resource_is_not_externally_managed(Change(KEY, mine, theirs))


def test_both_names_of_the_filter_pass_the_same_objects() -> None:
    for obj in (infra(), infra(EXTERNAL[0])):
        event = Change(KEY, None, obj)
        assert resource_externally_managed(event) is resource_is_not_externally_managed(event)


def test_the_watch_filter_is_exact_and_an_empty_one_passes_all() -> None:
    labelled = infra(labels={"cluster.x-k8s.io/watch-filter": "a"})
    assert has_watch_label(labelled, "")
    assert has_watch_label(labelled, "a")
    assert not has_watch_label(labelled, "b")
    assert not has_watch_label(infra(), "a")


def test_an_annotation_on_the_object_or_the_cluster_pauses() -> None:
    assert is_paused(infra({"cluster.x-k8s.io/paused": "false"}))
    assert is_paused(infra(), {"spec": {"paused": True}})
    assert not is_paused(infra(), {"spec": {"paused": False}})
    assert not is_paused(infra())


# From a Cluster to its InfraCluster


def cluster(reference: JsonObject | None, kind: str = "Cluster") -> JsonObject:
    return {
        "kind": kind,
        "metadata": {"name": "c", "namespace": "demo"},
        "spec": {"infrastructureRef": reference} if reference else {},
    }


REFERENCE = {"apiGroup": KIND.group, "kind": KIND.kind, "name": "c"}


class Cluster:
    """A cluster with one readable InfraCluster, or an error."""

    def __init__(self, obj: JsonObject | None, error: KubeError | None = None) -> None:
        self.obj = obj
        self.error = error

    async def read(self, key: Key) -> JsonObject | None:
        assert key == KEY
        if self.error:
            raise self.error
        return self.obj


@pytest.mark.parametrize(
    ("obj", "mine", "theirs"),
    [(infra(), [KEY], []), (infra(EXTERNAL[0]), [], [KEY]), (None, [], [])],
)
async def test_an_event_of_a_cluster_triggers_the_manager_of_its_infrastructure(
    obj: JsonObject | None, mine: list[Key], theirs: list[Key]
) -> None:
    read = Cluster(obj).read
    assert await cluster_to_infra_cluster(cluster(REFERENCE), KIND, read) == mine
    external = await cluster_to_infra_cluster(cluster(REFERENCE), KIND, read, manages_external=True)
    assert external == theirs


async def test_an_unreadable_object_or_another_kind_triggers_nothing() -> None:
    broken = Cluster(None, KubeError("the API server is not there"))
    assert await cluster_to_infra_cluster(cluster(REFERENCE), KIND, broken.read) == []
    read = Cluster(infra()).read
    assert await cluster_to_infra_cluster(cluster(None), KIND, read) == []
    assert await cluster_to_infra_cluster(cluster(REFERENCE, "Machine"), KIND, read) == []
    other = GroupKind(KIND.group, "BarCluster")
    assert await cluster_to_infra_cluster(cluster(REFERENCE), other, read) == []


def test_both_forms_of_a_reference_are_read() -> None:
    old = {"apiVersion": f"{KIND.group}/v1beta1", "kind": KIND.kind, "name": "c"}
    assert infrastructure_reference(cluster(old)) == (KIND, KEY)
    assert infrastructure_reference(cluster(REFERENCE)) == (KIND, KEY)
    assert infrastructure_reference(cluster({"kind": "X"})) is None


def test_the_owner_is_found_by_reference_or_by_label() -> None:
    owner = {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "a"}
    label = {"cluster.x-k8s.io/cluster-name": "b"}
    foreign = {"apiVersion": "apps/v1", "kind": "Cluster", "name": "x"}
    assert owner_cluster(infra(ownerReferences=[foreign, owner], labels=label)) == Key("demo", "a")
    assert owner_cluster(infra(ownerReferences=[foreign], labels=label)) == Key("demo", "b")
    assert owner_cluster(infra()) is None
