"""Decisions about whether an update would change anything (spec 10 B7).

The defaults themselves are verified on a real API server, see test_api_defaults.
"""

import base64
import copy
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.resource_manager.controllers.managed_resource.compare import needs_update
from pergola.resource_manager.target.content import content_digest


def obj(api_version: str, kind: str, **fields: object) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **fields}


def thing(**spec: object) -> JsonObject:
    return obj("example.com/v1", "Thing", spec=spec)


def config_map(**data: object) -> JsonObject:
    return obj("v1", "ConfigMap", data=data)


def container(**fields: object) -> JsonObject:
    template = {"spec": {"containers": [{"name": "a", **fields}]}}
    return obj("apps/v1", "Deployment", spec={"template": template})


def env(value: str) -> JsonObject:
    return container(env=[{"name": "A", "value": value}])


def budget(**spec: object) -> JsonObject:
    return obj("policy/v1", "PodDisruptionBudget", spec=spec)


def peer(**fields: object) -> JsonObject:
    spec = {"podSelector": {}, "ingress": [{"from": [fields]}]}
    return obj("networking.k8s.io/v1", "NetworkPolicy", spec=spec)


def role_binding(kind: str, **fields: object) -> JsonObject:
    return obj(
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        subjects=[{"kind": kind, "name": "a", **fields}],
    )


def webhooks(**fields: object) -> JsonObject:
    return obj(
        "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", webhooks=[{**fields}]
    )


def crd(**schema: object) -> JsonObject:
    spec = {"versions": [{"schema": {"openAPIV3Schema": {"properties": {"a": schema}}}}]}
    return obj("apiextensions.k8s.io/v1", "CustomResourceDefinition", spec=spec)


def service(**spec: object) -> JsonObject:
    return obj("v1", "Service", spec=spec)


def secret(**fields: object) -> JsonObject:
    return obj("v1", "Secret", **fields)


SAME: Final = [
    # numbers
    (thing(a=1), thing(a=1.0)),
    (thing(a=[{"b": 2}]), thing(a=[{"b": 2.0}])),
    (thing(), thing(a=None)),
    # quantities
    (container(resources={"limits": {"cpu": "1"}}), container(resources={"limits": {"cpu": 1.0}})),
    (
        container(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "1", "memory": "1Gi"}}),
        container(resources={"limits": {"cpu": "1000m"}, "requests": {"memory": "1024Mi"}}),
    ),
    (
        obj("v1", "ResourceQuota", spec={"hard": {"cpu": "1k"}}),
        obj("v1", "ResourceQuota", spec={"hard": {"cpu": 1000}}),
    ),
    # absent, empty and null
    (container(), container(args=[], env=None, resources={})),
    (container(resources={}), container()),
    (obj("v1", "ConfigMap"), obj("v1", "ConfigMap", data={}, binaryData=None)),
    (container(), container(stdin=False, workingDir="")),
    (container(env=[{"name": "A"}]), container(env=[{"name": "A", "value": ""}])),
    # defaults
    (container(image="a", imagePullPolicy="Always"), container(image="a")),
    (container(image="r:5/a:1", imagePullPolicy="IfNotPresent"), container(image="r:5/a:1")),
    (container(image="a@sha256:1", imagePullPolicy="IfNotPresent"), container(image="a@sha256:1")),
    (
        container(image="a:latest@sha256:1", imagePullPolicy="Always"),
        container(image="a:latest@sha256:1"),
    ),
    (service(ports=[{"port": 1, "targetPort": 1}]), service(ports=[{"port": 1}])),
    (service(clusterIP="1.2.3.4"), service(clusterIP="")),
    (role_binding("User", apiGroup="rbac.authorization.k8s.io"), role_binding("User")),
    (role_binding("ServiceAccount"), role_binding("ServiceAccount", apiGroup="")),
    (
        obj("apps/v1", "Deployment", spec={"replicas": 1, "strategy": {"type": "RollingUpdate"}}),
        obj("apps/v1", "Deployment", spec={}),
    ),
    # Secrets
    (secret(type="Opaque", data={"a": "Yg=="}), secret(stringData={"a": "b"})),
    (
        secret(data={"a": "Yg==", "b": ""}),
        secret(data={"a": "eA=="}, stringData={"a": "b", "b": ""}),
    ),
    (secret(data={"a": "YWJj"}), secret(data={"a": "YW\nJj\n"})),
    # fields added by others
    (webhooks(clientConfig={"url": "u", "caBundle": "YQ=="}), webhooks(clientConfig={"url": "u"})),
]


@pytest.mark.parametrize(("live", "merged"), SAME)
def test_equivalent_values_need_no_update(live: JsonObject, merged: JsonObject) -> None:
    assert not needs_update(live, merged)


DIFFERENT: Final = [
    (thing(a=1), thing(a=2)),
    (thing(a=1), thing(a=True)),
    (thing(a=0), thing(a=False)),
    (thing(a=1), thing(a="1")),
    (thing(a=1), thing()),
    (thing(), thing(a=1)),
    (thing(a=[1]), thing(a=[1, 1])),
    (thing(a=[1, 2]), thing(a=[2, 1])),
    (thing(a={}), thing(a=[])),
    (thing(a="x"), thing(a={"x": 1})),
    # Custom kinds may distinguish empty from absent.
    (thing(), thing(a=[])),
    (thing(a={}), thing()),
    (thing(), thing(a=False)),
    # Names that a user chooses are not fields.
    (config_map(value="1"), config_map(value="1000m")),
    (config_map(limits="1"), config_map(limits="1.0")),
    (config_map(), config_map(value="")),
    (config_map(type="Opaque"), config_map()),
    (env("1"), env("1000m")),
    (container(resources={"limits": {"cpu": "1"}}), container(resources={"limits": {"cpu": "x"}})),
    # An empty selector selects all.
    (peer(podSelector={}, namespaceSelector={}), peer(podSelector={})),
    (peer(podSelector={}), peer(podSelector={}, namespaceSelector={})),
    (budget(selector={}), budget()),
    (crd(items={}), crd()),
    (crd(default={}), crd()),
    (crd(additionalProperties=True), crd(additionalProperties=False)),
    # Pointers in Go preserve false.
    (container(), container(securityContext={"allowPrivilegeEscalation": False})),
    (obj("v1", "ServiceAccount"), obj("v1", "ServiceAccount", automountServiceAccountToken=False)),
    # Not defaults
    (container(image="a", imagePullPolicy="Never"), container(image="a")),
    (container(stdin=True), container()),
    (service(ports=[{"port": 1, "targetPort": 2}]), service(ports=[{"port": 1}])),
    (obj("apps/v1", "Deployment", spec={"replicas": 2}), obj("apps/v1", "Deployment", spec={})),
    (role_binding("User", namespace="x"), role_binding("User")),
    (secret(data={"a": "YWJj"}), secret(data={"a": "YWJk"})),
    (secret(data={"a": "YWJj", "b": ""}), secret(data={"a": "YWJj"})),
    (secret(data={"a": "YWJjx"}), secret(data={"a": "YWJjy"})),
    (webhooks(clientConfig={"caBundle": "YQ=="}), webhooks(clientConfig={"caBundle": "Yg=="})),
    (webhooks(failurePolicy="Ignore"), webhooks()),
    (webhooks(namespaceSelector={"matchLabels": {"a": "b"}}), webhooks()),
]  # fmt: skip


@pytest.mark.parametrize(("live", "merged"), DIFFERENT)
def test_different_values_need_an_update(live: JsonObject, merged: JsonObject) -> None:
    assert needs_update(live, merged)


def with_metadata(**metadata: object) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}


def namespace(**metadata: object) -> JsonObject:
    return {**with_metadata(**metadata), "kind": "Namespace"}


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_labels_and_annotations_are_compared(field: str) -> None:
    live = with_metadata(**{field: {"a": "b"}})

    assert not needs_update(live, copy.deepcopy(live))
    assert not needs_update(with_metadata(**{field: {}}), with_metadata())
    others: list[dict[str, str]] = [{}, {"a": "c"}, {"a": "b", "c": "d"}]
    for other in others:
        assert needs_update(live, with_metadata(**{field: other}))


def test_owners_are_compared() -> None:
    assert needs_update(with_metadata(ownerReferences=[{"uid": "u"}]), with_metadata())


def test_other_metadata_and_the_status_are_not_compared() -> None:
    live = {**with_metadata(resourceVersion="1", finalizers=["f"]), "status": {"a": 1}}

    assert not needs_update(live, with_metadata())


def test_annotations_set_by_kubernetes_are_not_compared() -> None:
    revision = {"deployment.kubernetes.io/revision": "1"}

    assert not needs_update(with_metadata(annotations=revision), with_metadata())
    assert needs_update(with_metadata(annotations={}), with_metadata(annotations=revision))
    name = {"kubernetes.io/metadata.name": "a"}
    assert not needs_update(namespace(labels=name), namespace())
    assert needs_update(with_metadata(labels=name), with_metadata())


def test_the_rules_of_an_aggregated_role_are_not_compared() -> None:
    api, kind = "rbac.authorization.k8s.io/v1", "ClusterRole"
    rules = [{"verbs": ["get"]}]

    aggregated: JsonObject = {"aggregationRule": {"clusterRoleSelectors": [{}]}}
    assert not needs_update(obj(api, kind, rules=rules, **aggregated), obj(api, kind, **aggregated))
    assert needs_update(obj(api, kind, rules=rules), obj(api, kind))


def test_fields_that_admission_adds_to_pods_are_not_compared() -> None:
    token = {"name": "kube-api-access-abcde"}
    usual = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300}
    live = {
        "nodeName": "node-1",
        "volumes": [{"name": "mine", "emptyDir": {}}, token],
        "tolerations": [{"key": "mine"}, usual],
        "containers": [{"name": "a", "volumeMounts": [{"name": "mine"}, token]}],
    }
    desired = {
        "volumes": [{"name": "mine"}],
        "tolerations": [{"key": "mine"}],
        "containers": [{"name": "a", "volumeMounts": [{"name": "mine"}]}],
    }

    assert not needs_update(obj("v1", "Pod", spec=live), obj("v1", "Pod", spec=desired))
    assert needs_update(
        obj("v1", "Pod", spec=live), obj("v1", "Pod", spec={**desired, "volumes": []})
    )


# The digest


def test_the_digest_changes_with_every_revertible_field() -> None:
    live = {**with_metadata(labels={"a": "b"}), "data": {"a": "b"}}
    others: list[JsonObject] = [
        {**live, "data": {"a": "c"}},
        {**live, "more": 1},
        {**with_metadata(labels={"a": "c"}), "data": {"a": "b"}},
        {**with_metadata(labels={"a": "b"}, annotations={"x": "y"}), "data": {"a": "b"}},
        {**with_metadata(labels={"a": "b"}, ownerReferences=[{"uid": "u"}]), "data": {"a": "b"}},
    ]

    digests = {content_digest(each) for each in (live, *others)}

    assert len(digests) == 6
    assert all(len(digest) == 16 for digest in digests)


def test_the_digest_ignores_fields_that_an_update_keeps() -> None:
    live = with_metadata(labels={"a": "b"})
    noise = {
        "resourceVersion": "9",
        "generation": 4,
        "managedFields": [{}],
        "finalizers": ["f"],
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    }

    changed = {**with_metadata(labels={"a": "b"}, **noise), "status": {"phase": "x"}}

    assert content_digest(live) == content_digest(changed)


def test_the_digest_does_not_depend_on_the_order_of_fields() -> None:
    one, other = {"a": {"x": 1, "y": 2}, "b": 1}, {"b": 1, "a": {"y": 2, "x": 1}}

    assert content_digest(one) == content_digest(other)


# Properties

KINDS: Final = [
    ("apps/v1", "Deployment"),
    ("v1", "Pod"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "LimitRange"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("example.com/v1", "Thing"),
]
NAMES: Final = st.sampled_from(
    [
        "spec",
        "template",
        "containers",
        "resources",
        "limits",
        "requests",
        "cpu",
        "ports",
        "port",
        "name",
        "data",
        "type",
        "selector",
        "ingress",
        "from",
        "podSelector",
        "versions",
        "schema",
        "value",
        "env",
        "volumes",
        "items",
        "stringData",
        "default",
        "max",
        "rules",
        "image",
    ]
)
VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "1", "1000m", "x", 0.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from(KINDS), st.dictionaries(NAMES, VALUES, max_size=4))
def test_an_object_needs_no_update_to_itself(kind: tuple[str, str], fields: JsonObject) -> None:
    fields.pop("stringData", None)
    live = obj(*kind, **fields)

    assert not needs_update(live, copy.deepcopy(live))


@given(
    st.sampled_from(KINDS),
    st.dictionaries(NAMES, VALUES, max_size=4),
    st.dictionaries(NAMES, VALUES, max_size=4),
)
def test_comparing_never_fails_and_modifies_nothing(
    kind: tuple[str, str], one: JsonObject, other: JsonObject
) -> None:
    live, merged = obj(*kind, **one), obj(*kind, **other)
    before = copy.deepcopy((live, merged))

    needs_update(live, merged)

    assert (live, merged) == before


@given(st.binary(max_size=40))
def test_string_data_equals_its_stored_form(value: bytes) -> None:
    text = value.decode("latin-1")
    stored = base64.b64encode(text.encode()).decode()

    assert not needs_update(secret(data={"a": stored}), secret(stringData={"a": text}))
