import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject, annotations_of, map_at
from pergola.bundle.errors import InvalidObject
from pergola.bundle.references import (
    Reference,
    annotate,
    annotated_references,
    reference_annotations,
    reference_key,
    references,
)

PREFIX = "reference.resources.gardener.cloud/"
USED = {Reference("configmap", "c"), Reference("secret", "s")}
POD_SPEC: JsonObject = {
    "containers": [
        {
            "name": "main",
            "envFrom": [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}],
        }
    ]
}

SHAPES: list[tuple[str, str, Any]] = [
    ("v1", "Pod", lambda pod: pod),
    *(
        (f"apps/{version}", kind, lambda pod: {"template": {"spec": pod}})
        for kind in ("Deployment", "StatefulSet")
        for version in ("v1", "v1beta2", "v1beta1")
    ),
    ("apps/v1", "DaemonSet", lambda pod: {"template": {"spec": pod}}),
    ("apps/v1beta2", "DaemonSet", lambda pod: {"template": {"spec": pod}}),
    ("batch/v1", "Job", lambda pod: {"template": {"spec": pod}}),
    *(
        (
            f"batch/{version}",
            "CronJob",
            lambda pod: {"jobTemplate": {"spec": {"template": {"spec": pod}}}},
        )
        for version in ("v1", "v1beta1")
    ),
    ("monitoring.coreos.com/v1", "Prometheus", lambda pod: pod),
]
TEMPLATES: dict[str, list[tuple[str, ...]]] = {
    "Deployment": [("spec", "template")],
    "StatefulSet": [("spec", "template")],
    "DaemonSet": [("spec", "template")],
    "Job": [("spec", "template")],
    "CronJob": [
        ("spec", "jobTemplate"),
        ("spec", "jobTemplate", "spec", "template"),
    ],
}


def pod(**spec: Any) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def managed_resource(*secrets: str) -> JsonObject:
    return {
        "apiVersion": "resources.gardener.cloud/v1alpha1",
        "kind": "ManagedResource",
        "metadata": {"name": "m"},
        "spec": {"secretRefs": [{"name": name} for name in secrets]},
    }


@pytest.mark.parametrize(
    ("name", "digits"),
    [("name", "82a3537f"), ("test-5678", "4ed34879"), ("test-1234", "6559bc9d")],
)
def test_keys_are_those_of_other_implementations(name: str, digits: str) -> None:
    assert reference_key("secret", name) == f"{PREFIX}secret-{digits}"
    assert reference_key("configmap", name) == f"{PREFIX}configmap-{digits}"


@pytest.mark.parametrize(("api_version", "kind", "spec"), SHAPES)
def test_objects_and_their_pod_templates_are_annotated(
    api_version: str, kind: str, spec: Any
) -> None:
    obj = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "x"},
        "spec": spec(POD_SPEC),
    }
    before = copy.deepcopy(obj)

    annotated = annotate(obj)

    desired = {reference_key("configmap", "c"): "c", reference_key("secret", "s"): "s"}
    assert references(obj) == USED
    assert annotations_of(annotated) == desired
    for path in TEMPLATES.get(kind, []):
        assert annotations_of(map_at(annotated, *path)) == desired
    assert obj == before


def test_a_managed_resource_uses_its_secrets() -> None:
    annotated = annotate(managed_resource("a", "b"))
    assert annotations_of(annotated) == {
        reference_key("secret", "a"): "a",
        reference_key("secret", "b"): "b",
    }


def test_a_prometheus_uses_the_objects_that_its_operator_mounts() -> None:
    auth = {
        "username": {"name": "user", "key": "u"},
        "password": {"name": "password", "key": "p"},
    }
    spec = {
        "remoteWrite": [{"url": "x", "basicAuth": auth}, {"url": "y"}],
        "volumes": [{"name": "v", "secret": {"secretName": "volume"}}],
        "secrets": ["listed"],
        "configMaps": ["listed"],
    }
    prometheus = {"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus", "spec": spec}
    assert references(prometheus) == {
        Reference("secret", "user"),
        Reference("secret", "password"),
        Reference("secret", "volume"),
        Reference("secret", "listed"),
        Reference("configmap", "listed"),
    }


@pytest.mark.parametrize("containers", ["containers", "initContainers", "ephemeralContainers"])
@pytest.mark.parametrize(
    ("container", "used"),
    [
        ({"envFrom": [{"configMapRef": {"name": "x"}}]}, Reference("configmap", "x")),
        ({"envFrom": [{"secretRef": {"name": "x"}}]}, Reference("secret", "x")),
        (
            {"env": [{"valueFrom": {"configMapKeyRef": {"name": "x"}}}]},
            Reference("configmap", "x"),
        ),
        ({"env": [{"valueFrom": {"secretKeyRef": {"name": "x"}}}]}, Reference("secret", "x")),
    ],
)
def test_references_of_all_kinds_of_containers_are_found(
    containers: str, container: JsonObject, used: Reference
) -> None:
    assert references(pod(**{containers: [container]})) == {used}


@pytest.mark.parametrize(
    ("volume", "used"),
    [
        ({"configMap": {"name": "x"}}, Reference("configmap", "x")),
        ({"secret": {"secretName": "x"}}, Reference("secret", "x")),
        ({"projected": {"sources": [{"secret": {"name": "x"}}]}}, Reference("secret", "x")),
        ({"projected": {"sources": [{"configMap": {"name": "x"}}]}}, Reference("configmap", "x")),
        ({"azureFile": {"secretName": "x"}}, Reference("secret", "x")),
        ({"cephfs": {"secretRef": {"name": "x"}}}, Reference("secret", "x")),
        ({"cinder": {"secretRef": {"name": "x"}}}, Reference("secret", "x")),
        ({"csi": {"nodePublishSecretRef": {"name": "x"}}}, Reference("secret", "x")),
        ({"flexVolume": {"secretRef": {"name": "x"}}}, Reference("secret", "x")),
        ({"iscsi": {"secretRef": {"name": "x"}}}, Reference("secret", "x")),
        ({"rbd": {"secretRef": {"name": "x"}}}, Reference("secret", "x")),
        ({"scaleIO": {"secretRef": {"name": "x"}}}, Reference("secret", "x")),
        ({"storageos": {"secretRef": {"name": "x"}}}, Reference("secret", "x")),
    ],
)
def test_references_of_all_kinds_of_volumes_are_found(volume: JsonObject, used: Reference) -> None:
    assert references(pod(volumes=[{"name": "v", **volume}])) == {used}


def test_pull_secrets_are_found() -> None:
    assert references(pod(imagePullSecrets=[{"name": "x"}])) == {Reference("secret", "x")}


def test_references_of_a_replica_set_are_read_for_garbage_collection() -> None:
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "spec": {"template": {"spec": POD_SPEC}},
    }
    assert references(replica_set) == USED


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"containers": None, "volumes": "none"},
        {"containers": [None, {"env": [{"name": "A", "value": "b"}], "envFrom": [{}]}]},
        {"volumes": [{"emptyDir": {}}, {"secret": {"secretName": 7}}]},
        {"imagePullSecrets": [{"name": ""}, {}]},
    ],
)
def test_missing_and_mistyped_references_are_ignored(spec: JsonObject) -> None:
    assert references(pod(**spec)) == set()


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("v1", "ConfigMap"),
        ("apps/v1", "ReplicaSet"),
        ("extensions/v1beta1", "Deployment"),
        ("apps/v2", "Deployment"),
        ("apps/v1beta1", "DaemonSet"),
    ],
)
def test_other_kinds_cannot_be_annotated(api_version: str, kind: str) -> None:
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"namespace": "ns", "name": "x"}}
    with pytest.raises(InvalidObject, match=rf"{api_version}/{kind} ns/x: .* manually"):
        annotate(obj)


def test_old_references_are_removed_and_other_annotations_kept() -> None:
    before = pod(containers=[])
    before["metadata"]["annotations"] = {
        f"{PREFIX}secret-12345678": "old",
        f"{PREFIX}anything": "",
        "checksum/config": "1",
    }
    assert annotations_of(annotate(before)) == {"checksum/config": "1"}


def test_extra_keys_get_an_empty_value_everywhere() -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {"template": {"spec": {}}},
    }
    annotated = annotate(deployment, "extra.example.org/key")
    assert annotations_of(annotated) == {"extra.example.org/key": ""}
    assert annotations_of(annotated["spec"]["template"]) == {"extra.example.org/key": ""}


def test_without_references_nothing_changes() -> None:
    assert annotate(pod()) == pod()


@pytest.mark.parametrize(
    ("key", "value", "used"),
    [
        # The hash is not verified: this one belongs to another name.
        (f"{PREFIX}configmap-82a3537f", "test-5678", {Reference("configmap", "test-5678")}),
        (f"{PREFIX}secret-", "x", {Reference("secret", "x")}),
        (f"{PREFIX}secret-82a3537f", "", set()),
        (f"{PREFIX}secret-82a-3537f", "x", set()),
        (f"{PREFIX}secret", "x", set()),
        (f"{PREFIX}service-82a3537f", "x", set()),
        (f"{PREFIX}Secret-82a3537f", "x", set()),
        ("other.example.org/secret-82a3537f", "x", set()),
    ],
)
def test_reference_annotations_are_recognized(key: str, value: str, used: set[Reference]) -> None:
    assert annotated_references({key: value}) == used


NAMES = st.text("abc-0", min_size=1, max_size=8)


@given(
    st.sets(st.builds(Reference, st.just("configmap"), NAMES))
    | st.sets(st.builds(Reference, st.just("secret"), NAMES))
)
def test_references_survive_as_annotations(used: set[Reference]) -> None:
    assert annotated_references(reference_annotations(used)) == used


@given(st.sampled_from(SHAPES), st.sets(NAMES), st.sets(NAMES))
def test_annotations_list_exactly_the_used_objects(
    shape: tuple[str, str, Any], secrets: set[str], config_maps: set[str]
) -> None:
    api_version, kind, spec = shape
    volumes = [{"secret": {"secretName": name}} for name in sorted(secrets)]
    volumes += [{"configMap": {"name": name}} for name in sorted(config_maps)]
    obj = {"apiVersion": api_version, "kind": kind, "spec": spec({"volumes": volumes})}
    annotated = annotate(obj)
    assert annotated_references(annotations_of(annotated)) == references(obj)
    assert annotate(annotated) == annotated
