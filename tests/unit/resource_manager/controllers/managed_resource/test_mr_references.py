"""The references in the status, and the former object of a manifest (spec 10 §4.5)."""

import pytest

from pergola.api.kinds import CONFIG_MAP, DEPLOYMENT
from pergola.api.objects import GroupKind, GroupVersionKind, JsonObject, Key
from pergola.resource_manager.controllers.managed_resource.references import (
    Equivalences,
    object_key,
    reference,
    reference_key,
    reference_kind,
    same_references,
    sort_references,
)


def ref(api_version: str, kind: str, key: str) -> JsonObject:
    namespace, _, name = key.rpartition("/")
    return reference(GroupVersionKind.parse(api_version, kind), Key(namespace, name), {}, {})


# Must hold


def test_a_move_to_the_new_group_of_ingresses_is_the_same_object() -> None:
    old = ref("extensions/v1beta1", "Ingress", "ns/a")
    previous = Equivalences.of({}).index([old])

    assert previous.take(ref("networking.k8s.io/v1", "Ingress", "ns/a")) == old
    assert previous.left() == []


def test_a_move_between_groups_named_equivalent_is_the_same_object() -> None:
    spec = {"equivalences": [[{"group": "a", "kind": "X"}, {"group": "b", "kind": "X"}]]}
    old = ref("a/v1", "X", "ns/x")
    previous = Equivalences.of(spec).index([old])

    assert previous.take(ref("b/v1", "X", "ns/x")) == old
    assert previous.left() == []


def test_references_are_sorted_by_object_key() -> None:
    refs = [
        ref("apps/v1", "Deployment", "web/nginx"),
        ref("v1", "Secret", "a/a"),
        ref("v1", "ConfigMap", "bar/foo"),
    ]

    assert [object_key(r) for r in sort_references(refs)] == [
        "/ConfigMap/bar/foo",
        "/Secret/a/a",
        "apps/Deployment/web/nginx",
    ]


# The rules


@pytest.mark.parametrize(
    ("reference_", "expected"),
    [
        (ref("v1", "ConfigMap", "a"), "/ConfigMap/default/a"),
        (ref("v1", "Namespace", "a"), "/Namespace//a"),
        (
            ref("rbac.authorization.k8s.io/v1", "ClusterRole", "a"),
            "rbac.authorization.k8s.io/ClusterRole/default/a",
        ),
        (ref("apps/v1beta1", "Deployment", "ns/a"), "apps/Deployment/ns/a"),
    ],
)
def test_an_object_key_has_no_version_and_a_namespace(
    reference_: JsonObject, expected: str
) -> None:
    assert object_key(reference_) == expected


def test_a_reference_omits_empty_fields() -> None:
    assert ref("v1", "Namespace", "a") == {"apiVersion": "v1", "kind": "Namespace", "name": "a"}


def test_a_reference_keeps_labels_and_annotations_that_are_text() -> None:
    gvk = CONFIG_MAP

    found = reference(gvk, Key("ns", "a"), {"a": "b", "n": 1}, {"c": "d", "x": None})

    assert found["labels"] == {"a": "b"}
    assert found["annotations"] == {"c": "d"}


def test_a_reference_is_read_back() -> None:
    found = ref("apps/v1", "Deployment", "ns/a")

    assert reference_kind(found) == DEPLOYMENT
    assert reference_key(found) == Key("ns", "a")


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet", "ReplicaSet", "StatefulSet"])
def test_workloads_of_extensions_are_those_of_apps(kind: str) -> None:
    kinds = Equivalences.of({}).kinds(GroupKind("extensions", kind))

    assert kinds == {GroupKind("apps", kind), GroupKind("extensions", kind)}


def test_lists_that_share_a_kind_become_one_with_the_defaults() -> None:
    spec = {
        "equivalences": [
            [{"group": "a", "kind": "X"}, {"group": "b", "kind": "X"}],
            [{"group": "c", "kind": "X"}, {"group": "d", "kind": "X"}],
            [
                {"group": "b", "kind": "X"},
                {"group": "c", "kind": "X"},
                {"group": "apps", "kind": "Deployment"},
            ],
        ]
    }
    equivalences = Equivalences.of(spec)

    assert len(equivalences.kinds(GroupKind("a", "X"))) == 6
    assert GroupKind("d", "X") in equivalences.kinds(GroupKind("extensions", "Deployment"))
    assert equivalences.kinds(GroupKind("z", "X")) == {GroupKind("z", "X")}


def test_the_exact_kind_is_found_before_an_equivalent_one() -> None:
    old, new = (
        ref("extensions/v1", "Ingress", "ns/a"),
        ref("networking.k8s.io/v1", "Ingress", "ns/a"),
    )
    previous = Equivalences.of({}).index([old, new])

    assert previous.take(ref("networking.k8s.io/v1beta1", "Ingress", "ns/a")) == new
    assert previous.left() == [old]


@pytest.mark.parametrize("other", ["other/a", "ns/b"])
def test_objects_with_another_name_or_namespace_are_different(other: str) -> None:
    old = ref("apps/v1", "Deployment", "ns/a")
    previous = Equivalences.of({}).index([old])

    assert previous.take(ref("apps/v1", "Deployment", other)) is None
    assert previous.left() == [old]


def test_empty_and_absent_fields_are_the_same() -> None:
    terse = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}]
    wordy: list[JsonObject] = [{**terse[0], "namespace": "", "labels": {}, "annotations": None}]

    assert same_references(terse, wordy)
    assert not same_references(terse, [])
    assert not same_references(terse, [{**terse[0], "labels": {"a": "b"}}])
    assert not same_references(terse, [{**terse[0], "apiVersion": "v2"}])
