"""Decided differences have a reason; all others remain."""

from typing import Final

import pytest

from pergola.api.objects import JsonObject, JsonValue
from pergola.garden.components.component import Target
from pergola.operator.compare import (
    Expected,
    Placed,
    compare,
    expected,
    reason,
    reason_alone,
    unexpected,
)

REVISIONS: Final = Expected(("Deployment garden/*",), "1", "2", "two revisions", "spec.revisions")
NEW: Final = Expected(("Deployment garden/new",), "(absent)", "(present)", "a new program")
ROWS: Final = (REVISIONS, NEW)


def deployment(name: str, revisions: int = 2) -> Placed:
    obj: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "garden"},
        "spec": {"revisions": revisions},
    }
    return Placed(Target.RUNTIME, "", "web", obj)


def why(path: str, original: JsonValue, ours: JsonValue) -> str | None:
    return reason(deployment("web"), path, original, ours, ROWS)


def test_a_decided_difference_has_its_reason() -> None:
    assert why("spec.revisions", 1, 2) == "two revisions"
    assert reason_alone(deployment("new"), is_there=False, rows=ROWS) == "a new program"


@pytest.mark.parametrize(
    ("path", "original", "ours"),
    [("spec.replicas", 1, 2), ("spec.revisions", 5, 2), ("spec.revisions", 1, 3)],
)
def test_other_fields_and_values_are_not_decided(path: str, original: int, ours: int) -> None:
    assert why(path, original, ours) is None


def test_a_decision_about_our_additional_objects_does_not_cover_missing_ones() -> None:
    assert reason_alone(deployment("new"), is_there=True, rows=ROWS) is None
    assert reason_alone(deployment("web"), is_there=False, rows=ROWS) is None


def test_undecided_differences_remain() -> None:
    there = [deployment("a", 1), deployment("b", 3), deployment("gone")]
    here = [deployment("a"), deployment("b"), deployment("new")]

    found = unexpected(compare(there, here), ROWS)

    assert [str(each.here.identity) for each in found.differing] == ["Deployment garden/b"]
    assert [str(each.identity) for each in found.only_there] == ["Deployment garden/gone"]
    assert found.only_here == []


def test_landscapes_with_only_decided_differences_are_equal() -> None:
    assert unexpected(compare([deployment("a", 1)], [deployment("a")]), ROWS).is_equal


@pytest.mark.parametrize("row", expected(), ids=lambda row: f"{row.objects[0]} {row.field}")
def test_every_decided_difference_has_a_reason(row: Expected) -> None:
    assert row.objects
    assert row.why.endswith(".")
    assert row.original != row.ours or row.original == "*"
