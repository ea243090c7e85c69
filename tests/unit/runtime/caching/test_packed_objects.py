"""Packed objects in caches: small, and equal to the originals when unpacked."""

from typing import Any

import orjson
import pytest

from pergola.api.objects import JsonObject
from pergola.runtime.caching.packed import pack, packed, packed_metadata, unpack


def deployment() -> JsonObject:
    """Return a small Deployment as an API server returns it."""
    container = {
        "name": "app",
        "image": "registry.example/app:1.0.0",
        "resources": {"requests": {"cpu": "10m"}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "app", "namespace": "garden", "labels": {"app": "ü\u2028"}},
        "spec": {
            "replicas": 0,
            "template": {"spec": {"containers": [container], "dnsPolicy": "ClusterFirst"}},
        },
    }


@pytest.mark.parametrize(
    "obj",
    [{}, deployment(), {"a": [None, True, 1, 1.5, "\\u0000", {"": []}]}, {"a": "b" * 99_999}],
)
def test_a_packed_object_unpacks_to_the_same_object(obj: dict[str, Any]) -> None:
    assert unpack(pack(obj)) == obj


def test_equal_objects_pack_alike() -> None:
    assert packed(deployment()) == packed(deployment())


def test_an_object_takes_less_than_half_of_its_text() -> None:
    assert len(pack(deployment())) < len(orjson.dumps(deployment())) / 2


def test_readers_cannot_modify_cached_objects() -> None:
    kept = packed(deployment())
    kept.unpack()["spec"]["replicas"] = 5
    assert kept.unpack() == deployment()


def test_only_selected_metadata_is_kept() -> None:
    kept = packed_metadata(deployment())
    assert kept.labels == {"app": "ü\u2028"}
    assert kept.unpack().keys() == {"apiVersion", "kind", "metadata"}
