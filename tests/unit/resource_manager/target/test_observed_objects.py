"""Cached fields of managed objects: those needed to compare them and to check their health."""

from copy import deepcopy
from typing import Any

import pytest

from pergola.api import marks
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.resource_manager.target.observed import Observed, keeper

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")


def everything(origin: str) -> bool:
    """Work on the objects of all origins here."""
    return bool(origin)


def live() -> JsonObject:
    """Return a Deployment as the watch delivers it."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "app",
            "namespace": "garden",
            "uid": "u",
            "resourceVersion": "7",
            "annotations": {marks.ORIGIN: "id:garden/demo"},
            "managedFields": [{"manager": "pergola", "fieldsV1": {"f:spec": {}}}],
        },
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "a"}]}}},
        "status": {"replicas": 1},
    }


def kept(obj: JsonObject) -> Observed:
    """Return the cached form of a Deployment."""
    return keeper(DEPLOYMENT, everything)(deepcopy(obj))


def test_the_object_is_kept_without_its_managed_fields() -> None:
    expected = live()
    del expected["metadata"]["managedFields"]
    assert kept(live()).unpack() == expected


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "replicas"), 2),
        (("spec", "template", "spec", "containers"), [{"name": "b"}]),
        (("spec", "added"), None),
        (("metadata", "labels"), {"a": "b"}),
        (("metadata", "annotations"), {marks.ORIGIN: "id:garden/other"}),
        (("metadata", "ownerReferences"), [{"uid": "o"}]),
        (("data",), {"a": "b"}),
    ],
)
def test_an_edit_of_any_revertible_field_is_detected(path: tuple[str, ...], value: object) -> None:
    edited = live()
    *parents, last = path
    here: dict[str, Any] = edited
    for step in parents:
        here = here[step]
    here[last] = value
    assert kept(edited).digest != kept(live()).digest


def test_objects_of_one_origin_share_its_text() -> None:
    assert kept(live()).origin is kept(live()).origin


def test_the_content_of_secrets_and_large_objects_is_not_kept() -> None:
    large = live() | {"spec": {"text": "x" * 20_000}}
    assert kept(large).unpack() is None
    assert keeper(GroupVersionKind("", "v1", "Secret"), everything)(live()).unpack() is None
