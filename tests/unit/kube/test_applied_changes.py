"""The fields that a server-side apply would change, for people."""

import pytest

from pergola.api.objects import JsonObject
from pergola.kube.applied import changes, is_applied

MANAGER = "tests"
LIVE: JsonObject = {
    "metadata": {
        "name": "a",
        "labels": {"old": "1", "same": "1"},
        "managedFields": [
            {
                "manager": MANAGER,
                "operation": "Apply",
                "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:old": {}, "f:same": {}}},
                    "f:spec": {
                        "f:replicas": {},
                        "f:containers": {'k:{"name":"web"}': {".": {}, "f:image": {}}},
                    },
                },
            }
        ],
    },
    "spec": {"replicas": 1, "defaulted": True, "containers": [{"name": "web", "image": "a"}]},
}


def desired(**spec: object) -> JsonObject:
    containers = [{"name": "web", "image": "a"}]
    return {
        "metadata": {"name": "a", "labels": {"old": "1", "same": "1"}},
        "spec": {"replicas": 1, "containers": containers, **spec},
    }


def paths(intended: JsonObject) -> dict[str, tuple[object, object]]:
    return {path: (old, new) for path, old, new in changes(intended, LIVE, MANAGER)}


def test_an_object_in_its_desired_state_has_no_changes_despite_server_defaults() -> None:
    assert is_applied(desired(), LIVE, MANAGER)
    assert paths(desired()) == {}


def test_a_changed_an_added_and_a_removed_field_have_their_paths() -> None:
    intended = desired(replicas=2, paused=True)
    del intended["metadata"]["labels"]["old"]
    assert paths(intended) == {
        "spec.replicas": (1, 2),
        "spec.paused": (None, True),
        "metadata.labels.old": ("1", None),
    }


def test_list_items_are_matched_by_name() -> None:
    new = {"name": "side", "image": "b"}
    intended = desired(containers=[{"name": "web", "image": "c"}, new])
    assert paths(intended) == {
        "spec.containers[web].image": ("a", "c"),
        "spec.containers[side]": (None, new),
    }


def test_an_item_that_is_no_longer_desired_is_removed() -> None:
    intended = desired(containers=[])
    removed = {"name": "web", "image": "a"}
    assert paths(intended)["spec.containers[web]"] == (removed, None)


def test_a_list_of_values_changes_as_a_whole() -> None:
    assert paths(desired(replicas=1, args=["b"])) == {"spec.args": (None, ["b"])}


def test_fields_of_another_manager_are_taken_over_without_a_change() -> None:
    assert not is_applied(desired(), LIVE, "somebody-else")
    assert [*changes(desired(), LIVE, "somebody-else")] == []


@pytest.mark.parametrize(
    ("api_version", "is_default"),
    [
        ("networking.k8s.io/v1", False),
        ("gateway.networking.k8s.io/v1", True),
        ("snapshot.storage.k8s.io/v1", True),
        ("autoscaling.k8s.io/v1", True),
        ("example.org/v1", True),
    ],
)
def test_more_fields_in_a_list_may_be_defaults_of_a_definition(
    api_version: str, is_default: bool
) -> None:
    """Kubernetes serves some groups of its project itself; others have definitions."""
    owned: JsonObject = {"f:spec": {"f:rules": {}}}
    live: JsonObject = {
        "apiVersion": api_version,
        "metadata": {
            "managedFields": [{"manager": MANAGER, "operation": "Apply", "fieldsV1": owned}]
        },
        "spec": {"rules": [{"host": "a", "weight": 1}]},
    }
    intended: JsonObject = {"apiVersion": api_version, "spec": {"rules": [{"host": "a"}]}}
    assert is_applied(intended, live, MANAGER) is is_default
