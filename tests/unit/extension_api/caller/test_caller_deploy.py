"""Decisions about whether deploying a resource would change it (spec 21 §15.2)."""

from typing import Any

import pytest

from pergola.api.objects import JsonObject
from pergola.extension_api.caller.deploy import differs

LIVE: JsonObject = {
    "metadata": {
        "labels": {"origin": "gardener-operator", "other": "x"},
        "annotations": {"gardener.cloud/timestamp": "2026-03-01T10:00:00Z", "mark": "1"},
    },
    "spec": {"type": "local", "class": "garden", "providerConfig": {"a": 1}},
}


def desired(**spec: Any) -> JsonObject:
    given = {"type": "local", "class": "garden", "providerConfig": {"a": 1}, **spec}
    return {
        "metadata": {"labels": {"origin": "gardener-operator"}, "annotations": {"mark": "1"}},
        "spec": {name: value for name, value in given.items() if value is not None},
    }


def test_labels_and_annotations_of_others_are_no_difference() -> None:
    assert not differs(LIVE, desired())


@pytest.mark.parametrize(
    "changed",
    [
        desired(type="other"),
        desired(providerConfig={"a": 2}),
        desired(providerConfig=None),
        {**desired(), "metadata": {"labels": {"origin": "another"}}},
        {**desired(), "metadata": {"annotations": {"mark": "2"}}},
    ],
)
def test_each_changed_or_removed_field_is_a_difference(changed: JsonObject) -> None:
    assert differs(LIVE, changed)
