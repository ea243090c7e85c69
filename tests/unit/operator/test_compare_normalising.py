"""Objects are compared without generated values, hashes, tags and times."""

import base64

import pytest

from pergola.api.objects import JsonObject, JsonValue
from pergola.operator.compare.normalise import GENERATED, TEXT, normalise

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def normal(obj: JsonObject, *, has_texts: bool = True) -> JsonObject:
    return normalise({"kind": "Thing", **obj}, has_texts=has_texts)


def test_values_of_secrets_are_removed() -> None:
    secret: JsonObject = {
        "kind": "Secret",
        "data": {"password": base64.b64encode(b"hunter2").decode()},
        "stringData": {"token": "hunter2"},
    }

    assert normalise(secret, has_texts=True)["data"] == {
        "password": GENERATED,
        "token": GENERATED,
    }


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("value", "Bearer c2VjcmV0LXNlY3JldC1zZWNyZXQ="),
        ("password", "hunter2"),
        ("clientSecret", "hunter2"),
        ("text", PEM.replace("CERTIFICATE", "RSA PRIVATE KEY").replace("MIIB", "c2VjcmV0")),
    ],
)
def test_credentials_outside_of_secrets_are_removed(field: str, value: str) -> None:
    found = str(normal({"spec": {field: value}}))

    assert "hunter2" not in found
    assert "c2Vjcm" not in found


def test_status_and_fields_set_by_the_server_are_removed() -> None:
    metadata: JsonObject = {"name": "a", "uid": "1", "resourceVersion": "2", "generation": 3}

    assert normal({"metadata": metadata, "status": {"ready": True}}) == {
        "labels": {},
        "annotations": {},
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ca-bundle-2160d7c4", "ca-bundle-00000000"),
        ("ca-2160d7c4-d15ea", "ca-00000000"),
        ("/etc/ca-2160d7c4/tls", "/etc/ca-00000000/tls"),
        ("--timeout=48h0m0s", "--timeout=48h"),
        ("--interval=1m0s", "--interval=1m"),
        ("example.org/a/b:v1.2", "example.org/a/b:v1.3@sha256:abc"),
        ("--image=example.org/a/b:v1.2", "--image=example.org/a/b:v1.3"),
        (f"ca: {PEM}", f"ca: {PEM.replace('MIIB', 'MIIC')}"),
    ],
)
def test_texts_that_vary_between_landscapes_are_equal(one: str, other: str) -> None:
    assert normal({"spec": {"text": one}}) == normal({"spec": {"text": other}})


@pytest.mark.parametrize(
    ("one", "other"),
    [("web-server", "web-client"), ("10m", "10s"), ("example.org:80", "example.org:443")],
)
def test_texts_with_another_meaning_differ(one: str, other: str) -> None:
    assert normal({"spec": {"text": one}}) != normal({"spec": {"text": other}})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["--domain", "cluster.local", "--v=2"], ["--domain=cluster.local", "--v=2"]),
        (["--fraction=0.050000"], ["--fraction=0.05"]),
        (["--rate=1.000000"], ["--rate=1"]),
    ],
)
def test_different_notations_of_arguments_are_equal(
    one: list[JsonValue], other: list[JsonValue]
) -> None:
    assert normal({"args": one}) == normal({"args": other})


def test_meaningful_zeros_are_kept() -> None:
    assert normal({"args": ["--replicas=10"]})["args"] == ["--replicas=10"]
    assert normal({"args": ["--share=0.105"]})["args"] == ["--share=0.105"]


def test_labels_about_the_generation_of_credentials_are_ignored() -> None:
    labels = {"managed-by": "secrets-manager", "name": "ca", "issued-at-time": "1"}

    assert normal({"metadata": {"labels": labels}})["labels"] == {
        "managed-by": "secrets-manager",
        "name": "ca",
    }


def test_structured_texts_are_compared_by_their_fields() -> None:
    ports = '[{"protocol":"TCP","port":8080}]'
    annotated: JsonObject = {"metadata": {"annotations": {"ports": ports, "checksum/a": "1"}}}
    config: JsonObject = {"kind": "ConfigMap", "data": {"config.yaml": "a: {b: 1}", "text": "b"}}

    assert normal(annotated)["annotations"] == {
        "ports": [{"protocol": "TCP", "port": 8080}],
        "checksum/a": GENERATED,
    }
    assert normal(config)["data"] == {"config.yaml": {"a": {"b": 1}}, "text": "b"}


def test_rules_are_compared_by_the_permissions_they_grant() -> None:
    together: JsonObject = {
        "kind": "Role",
        "rules": [{"apiGroups": ["", "apps"], "resources": ["a"], "verbs": ["list", "get"]}],
    }
    apart: JsonObject = {
        "kind": "Role",
        "rules": [
            {"apiGroups": ["apps"], "resources": ["a"], "verbs": ["get", "list"]},
            {"apiGroups": [""], "resources": ["a"], "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["a"], "verbs": ["list"]},
        ],
    }

    assert normal(together) == normal(apart)
    assert normal(together)["rules"] == {"a": ["get", "list"], "a.apps": ["get", "list"]}


def test_permissions_for_one_object_differ_from_permissions_for_all() -> None:
    rule: JsonObject = {"apiGroups": [""], "resources": ["a"], "verbs": ["get"]}

    one = normal({"kind": "Role", "rules": [rule]})
    other = normal({"kind": "Role", "rules": [{**rule, "resourceNames": ["x"]}]})

    assert one != other


def test_long_texts_are_equal_if_texts_are_not_compared() -> None:
    config: JsonObject = {"kind": "ConfigMap", "data": {"a": "1"}, "spec": {"text": "x" * 161}}

    found = normal(config, has_texts=False)

    assert (found["data"], found["spec"]) == ({"a": TEXT}, {"text": TEXT})


def test_definitions_are_compared_by_the_fields_that_clients_depend_on() -> None:
    version: JsonObject = {"name": "v1", "served": True, "storage": True, "schema": {"a": 1}}
    definition: JsonObject = {
        "kind": "CustomResourceDefinition",
        "spec": {
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "shortNames": ["t"]},
            "versions": [version],
        },
    }

    assert normal(definition)["spec"] == {
        "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things"},
        "versions": [{"name": "v1", "served": True, "storage": True}],
    }
    assert "spec" not in normal(definition, has_texts=False)


def test_a_target_port_of_0_means_none() -> None:
    one: JsonObject = {"kind": "Service", "spec": {"ports": [{"port": 80, "targetPort": 0}]}}
    other: JsonObject = {"kind": "Service", "spec": {"ports": [{"port": 80}]}}

    assert normal(one) == normal(other)


@pytest.mark.parametrize(
    ("kind", "mode"), [("DestinationRule", "DISABLE"), ("Gateway", "PASSTHROUGH")]
)
def test_the_default_tls_mode_may_be_omitted(kind: str, mode: str) -> None:
    def spec(tls: JsonObject) -> JsonObject:
        return normal({"kind": kind, "spec": {"servers": [{"tls": tls}]}})

    assert spec({}) == spec({"mode": mode})
    assert spec({}) != spec({"mode": "SIMPLE"})


def test_spaces_in_expressions_matter_only_in_quotes() -> None:
    one = normal({"expr": 'absent( up{job = "a", b!="c"} == 1 )'})

    assert one == normal({"expr": 'absent(up{job="a",b!="c"} == 1)'})
    assert one != normal({"expr": 'absent(up{job=" a",b!="c"} == 1)'})
    assert one != normal({"expr": 'absent(up{job="a",b!="c"} == 2)'})


def test_comments_and_lines_of_expressions_are_not_compared() -> None:
    one = normal({"expr": 'a{b="#1"} # all of them\n  * on (c)\n  group_left () d'})

    assert one == normal({"expr": 'a{b="#1"} * on(c) group_left d'})
    assert one != normal({"expr": 'a{b="#2"} * on(c) group_left d'})


def test_switches_that_are_off_and_zeros_of_a_configuration_mean_nothing() -> None:
    def file(text: str) -> JsonObject:
        data: JsonObject = {"config.yaml": f"kind: SchedulerConfiguration\n{text}"}
        return normal({"kind": "ConfigMap", "data": data})

    written = 'a: {enabled: false, workers: 5}\nb: ""\nc: 0s\nd: [{e: {}}]\nleaderElect: false\n'
    assert file(written) == file("d: [{}]\nleaderElect: false\n")
    assert file(written) != file("d: [{}]\n")


def test_annotations_of_a_dashboard_are_marks_in_diagrams() -> None:
    dashboard = '{"annotations": {"list": [{"name": "a"}]}, "panels": []}'
    found = normal({"kind": "ConfigMap", "data": {"a.json": dashboard}})

    assert found["data"]["a.json"]["annotations"] == {"list": [{"name": "a"}]}


def test_the_version_of_an_image_is_not_compared_in_labels_either() -> None:
    one, other = (
        normal({"metadata": {"labels": {"app.kubernetes.io/version": version}}})
        for version in ("1.29.1", "1.29.6")
    )

    assert one == other
