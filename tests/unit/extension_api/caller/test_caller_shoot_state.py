"""The data that a ShootState has for a resource (spec 40 §4)."""

import pytest

from pergola.api.objects import JsonObject
from pergola.extension_api.caller import Saved, Unrestorable, saved

REF: JsonObject = {"apiVersion": "v1", "kind": "Secret", "name": "keys"}
NAMED: JsonObject = {"name": "wireguard", "resourceRef": REF}


def secret() -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "keys",
            "namespace": "shoot--old--demo",
            "uid": "1",
            "resourceVersion": "7",
            "ownerReferences": [{}],
            "finalizers": ["x"],
            "labels": {"a": "b"},
        },
        "data": {"key": "czNjcjN0"},
    }


def shoot_state(*extensions: JsonObject, resources: list[JsonObject] | None = None) -> JsonObject:
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "ShootState",
        "metadata": {"name": "demo"},
        "spec": {"extensions": list(extensions), "resources": resources or []},
    }


def test_an_entry_is_found_by_kind_name_and_purpose() -> None:
    state = shoot_state(
        {"kind": "Infrastructure", "name": "demo", "state": {"n": 1}},
        {"kind": "Network", "name": "other", "state": {"n": 2}},
        {"kind": "Network", "name": "demo", "purpose": "exposure", "state": {"n": 3}},
        {"kind": "Network", "name": "demo", "state": {"n": 4}},
    )
    assert saved(state, "Network", "demo").state == {"n": 4}
    assert saved(state, "Network", "demo", "exposure").state == {"n": 3}


def test_a_state_without_an_entry_is_empty() -> None:
    assert saved(shoot_state(), "Network", "demo") == Saved()


def test_metadata_of_the_old_cluster_is_removed_from_objects() -> None:
    entry = {"kind": "Network", "name": "demo", "state": {}, "resources": [NAMED]}
    found = saved(shoot_state(entry, resources=[{**REF, "data": secret()}]), "Network", "demo")
    assert found.resources == (NAMED,)
    assert found.objects == (
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "keys", "labels": {"a": "b"}},
            "data": {"key": "czNjcjN0"},
        },
    )


def test_an_object_without_data_is_an_error_without_secrets() -> None:
    entry = {"kind": "Network", "name": "demo", "resources": [NAMED]}
    with pytest.raises(Unrestorable) as caught:
        saved(shoot_state(entry), "Network", "demo")
    assert str(caught.value) == (
        "ShootState demo: Network demo refers to Secret keys, for which spec.resources has no data"
    )


def test_another_kind_is_not_a_shoot_state() -> None:
    with pytest.raises(Unrestorable, match="but this is ConfigMap"):
        saved({"apiVersion": "v1", "kind": "ConfigMap"}, "Network", "demo")
