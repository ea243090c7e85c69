"""Objects that need attention, since when, and why."""

from typing import Any

import pytest

from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.dashboard.state.verdicts import State, verdict
from tests.support.dashboard_objects import APPLIED, HEALTHY, bad, condition, good

EARLIER = "2026-01-01T00:00:00Z"


def resource(conditions: list[JsonObject], **metadata: Any) -> JsonObject:
    return {
        "metadata": {"name": "web", "namespace": "demo", "generation": 1, **metadata},
        "status": {"observedGeneration": 1, "conditions": conditions},
    }


def test_an_object_with_good_conditions_is_healthy() -> None:
    found = verdict(MANAGED_RESOURCE, resource(good()))
    assert (found.state, found.problem) == (State.HEALTHY, "")


def test_a_false_condition_is_a_problem_since_its_transition() -> None:
    conditions = bad("it is broken")
    found = verdict(MANAGED_RESOURCE, resource(conditions))
    assert (found.state, found.problem, found.patience) == (State.TROUBLE, "it is broken", 0)
    assert found.since == conditions[1]["lastTransitionTime"]


def test_the_oldest_of_several_problems_is_reported() -> None:
    conditions = [
        condition(HEALTHY, "False", "the effect", minutes=1),
        condition(APPLIED, "False", "the cause", minutes=9),
    ]
    assert verdict(MANAGED_RESOURCE, resource(conditions)).problem == "the cause"


def test_a_rollout_is_tolerated_for_a_while() -> None:
    conditions = [*good()[:2], condition("ResourcesProgressing", "True", "1 of 2 pods")]
    found = verdict(MANAGED_RESOURCE, resource(conditions))
    assert (found.state, found.patience) == (State.PROGRESSING, 300)


def test_a_deletion_is_reported_with_its_cause_and_finalizers() -> None:
    blocked = condition(APPLIED, "False", "2 objects exist", reason="DeletionPending")
    obj = resource([blocked], deletionTimestamp=EARLIER, finalizers=["example.org/x"])
    found = verdict(MANAGED_RESOURCE, obj)
    assert (found.state, found.since) == (State.DELETING, EARLIER)
    assert found.problem == "2 objects exist (it waits for the finalizers example.org/x)"


def test_an_ignored_object_is_marked_and_needs_no_attention() -> None:
    obj = resource(bad("old"), annotations={"resources.gardener.cloud/ignore": "true"})
    found = verdict(MANAGED_RESOURCE, obj)
    assert found.state is State.IGNORED
    assert "resources.gardener.cloud/ignore" in found.problem


def test_an_unobserved_generation_is_reported() -> None:
    obj = resource(good(), generation=2)
    found = verdict(MANAGED_RESOURCE, obj)
    assert (found.state, found.since) == (State.PROGRESSING, "")
    assert "generation 2 was not reconciled yet" in found.problem


def test_an_object_without_a_status_is_reported() -> None:
    found = verdict(MANAGED_RESOURCE, {"metadata": {"creationTimestamp": EARLIER}})
    assert (found.state, found.since, found.patience) == (State.PROGRESSING, EARLIER, 60)
    assert "check that the responsible one runs" in found.problem


@pytest.mark.parametrize("state", ["Error", "Failed"])
def test_a_failed_operation_is_a_problem_with_its_errors(state: str) -> None:
    last = {"type": "Reconcile", "state": state, "lastUpdateTime": EARLIER}
    error = {"description": "quota exceeded"}
    obj = {"status": {"lastOperation": last, "lastErrors": [error], "lastError": error}}
    for gvk in (GARDEN, INFRASTRUCTURE):
        found = verdict(gvk, obj)
        assert (found.state, found.since) == (State.TROUBLE, EARLIER)
        assert "quota exceeded" in found.problem


def test_a_running_operation_is_tolerated_for_a_while() -> None:
    last = {"type": "Create", "state": "Processing", "progress": 40, "description": "ensure VPC"}
    found = verdict(INFRASTRUCTURE, {"status": {"lastOperation": last}})
    assert (found.state, found.problem) == (State.PROGRESSING, "Create is at 40 %: ensure VPC")


def test_an_informational_condition_is_never_a_problem() -> None:
    conditions = [condition("RequiredRuntime", "False"), condition("Installed", "True")]
    assert verdict(EXTENSION, resource(conditions)).state is State.HEALTHY
