"""Differences between objects, considering the defaults of an API server."""

from pergola.api.objects import GroupKind, JsonObject, JsonValue
from pergola.kube.equality import Difference, differences, shape_of, shapes_of

DEPLOYMENT = shape_of(GroupKind("apps", "Deployment"))
SERVICE = shape_of(GroupKind("", "Service"))


def deployment(**container: JsonValue) -> JsonObject:
    containers: list[JsonValue] = [{"name": "app", "image": "app", **container}]
    return {"spec": {"template": {"spec": {"containers": containers}}}}


def paths(found: list[Difference]) -> list[str]:
    return [each.path for each in found]


def test_defaults_and_values_assigned_by_the_server_equal_absent_fields() -> None:
    live: JsonObject = {
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.0.0.1",
            "ports": [{"name": "web", "port": 80, "protocol": "TCP", "targetPort": 80}],
        }
    }
    manifest: JsonObject = {"spec": {"ports": [{"name": "web", "port": 80}]}}

    assert list(differences(live, manifest, SERVICE)) == []


def test_the_smallest_difference_is_reported_with_both_values() -> None:
    found = differences(
        deployment(resources={"requests": {"cpu": "1", "memory": "1Gi"}}),
        deployment(resources={"requests": {"cpu": "1000m", "memory": "2Gi"}}),
        DEPLOYMENT,
    )

    path = "spec.template.spec.containers[app].resources.requests.memory"
    assert list(found) == [Difference(path, "1Gi", "2Gi")]


def test_named_items_are_compared_with_items_of_the_same_name() -> None:
    one: JsonObject = {"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]}
    other: JsonObject = {"ports": [{"name": "b", "port": 3}, {"name": "a", "port": 1}]}

    assert list(differences(one, other, {})) == [Difference("ports[b].port", 2, 3)]


def test_an_item_on_only_one_side_is_reported_as_a_whole() -> None:
    one: JsonObject = {"ports": [{"name": "a", "port": 1}]}

    (found,) = differences(one, {"ports": []}, {})

    assert found == Difference("ports[a]", {"name": "a", "port": 1}, None)


def test_only_unmatched_items_of_plain_lists_are_reported() -> None:
    one: JsonObject = {"args": ["--a", "--b", "--b"]}
    other: JsonObject = {"args": ["--b", "--c", "--a"]}

    assert list(differences(one, other, {})) == [Difference("args", ["--b"], ["--c"])]


def test_the_order_of_a_list_is_not_a_difference() -> None:
    one: JsonObject = {"verbs": ["get", "list"], "rules": [{"a": 1}, {"b": 2}]}
    other: JsonObject = {"verbs": ["list", "get"], "rules": [{"b": 2}, {"a": 1}]}

    assert list(differences(one, other, {})) == []


def test_items_without_names_are_paired_in_their_order() -> None:
    one: JsonObject = {"rules": [{"a": 1}, {"b": 2}, {"c": 3}]}
    other: JsonObject = {"rules": [{"c": 3}, {"b": 4}, {"a": 1}]}

    assert list(differences(one, other, {})) == [Difference("rules[1].b", 2, 4)]


def test_an_explicit_default_differs_from_another_value() -> None:
    one: JsonObject = {"spec": {"replicas": 2}}

    assert paths(list(differences(one, {"spec": {}}, DEPLOYMENT))) == ["spec.replicas"]
    assert paths(list(differences({"spec": {"replicas": 1}}, {"spec": {}}, DEPLOYMENT))) == []


def test_values_of_different_types_differ_as_a_whole() -> None:
    assert list(differences({"a": [1]}, {"a": {"b": 1}}, {})) == [Difference("a", [1], {"b": 1})]


def test_defaults_of_a_definition_equal_absent_fields() -> None:
    fields: JsonObject = {
        "replicas": {"type": "integer", "default": 1},
        "probe": {
            "type": "object",
            "default": {},
            "properties": {"scheme": {"type": "string", "default": "HTTP"}},
        },
        "sizes": {
            "type": "object",
            "additionalProperties": {"x-kubernetes-int-or-string": True},
        },
        "rules": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"mode": {"type": "string", "default": "on"}},
            },
        },
    }
    spec: JsonObject = {"type": "object", "properties": fields}
    schema: JsonObject = {"type": "object", "properties": {"spec": spec}}
    definition: JsonObject = {
        "spec": {
            "group": "example.org",
            "names": {"kind": "Thing"},
            "versions": [
                {"name": "v1", "storage": True, "schema": {"openAPIV3Schema": schema}},
                {"name": "v2", "storage": False, "schema": {"openAPIV3Schema": {}}},
            ],
        }
    }
    shape = shapes_of([definition])[GroupKind("example.org", "Thing")]
    live: JsonObject = {
        "spec": {
            "replicas": 1,
            "probe": {"scheme": "HTTP"},
            "sizes": {"cpu": "1"},
            "rules": [{"name": "a", "mode": "on"}],
        }
    }
    manifest: JsonObject = {"spec": {"sizes": {"cpu": "1000m"}, "rules": [{"name": "a"}]}}

    assert list(differences(live, manifest, shape)) == []
    changed: JsonObject = {"spec": {**manifest["spec"], "replicas": 2}}
    assert list(differences(live, changed, shape)) == [Difference("spec.replicas", 1, 2)]
