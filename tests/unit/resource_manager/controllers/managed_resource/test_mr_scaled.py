"""The targets of HorizontalPodAutoscalers (spec 10 §4.8)."""

import pytest

from pergola.api.objects import JsonObject
from pergola.resource_manager.controllers.managed_resource.references import Equivalences
from pergola.resource_manager.controllers.managed_resource.scaled import (
    ScaleTargetError,
    scaled_objects,
)


def autoscaler(api_version: str, kind: str = "Deployment") -> JsonObject:
    return {
        "metadata": {"name": "hpa", "namespace": "ns"},
        "spec": {"scaleTargetRef": {"apiVersion": api_version, "kind": kind, "name": "web"}},
    }


def test_a_target_matches_all_its_equivalent_kinds() -> None:
    found = scaled_objects([autoscaler("apps/v1")], Equivalences.of({}))

    assert found == {("apps", "Deployment", "ns", "web"), ("extensions", "Deployment", "ns", "web")}


@pytest.mark.parametrize(("api_version", "group"), [("v1", ""), ("", ""), ("a.b/v1", "a.b")])
def test_the_version_of_a_target_does_not_count(api_version: str, group: str) -> None:
    found = scaled_objects([autoscaler(api_version, "X")], Equivalences.of({}))

    assert found == {(group, "X", "ns", "web")}


def test_without_autoscalers_there_are_no_targets() -> None:
    assert scaled_objects([], Equivalences.of({})) == frozenset()


def test_a_target_version_that_cannot_be_read_is_an_error_that_names_the_autoscaler() -> None:
    with pytest.raises(
        ScaleTargetError, match=r"HorizontalPodAutoscaler ns/hpa: spec\.scaleTarget"
    ):
        scaled_objects([autoscaler("a/b/c")], Equivalences.of({}))
