from typing import Any

import pytest

from pergola.api.managed_resource_status import (
    applied_problem,
    deletion_problem,
    healthy_problem,
    progressing_problem,
)
from pergola.api.objects import JsonObject


def resource(
    *conditions: tuple[str, str, str, str], generation: int = 1, observed: int = 1
) -> JsonObject:
    found: list[dict[str, Any]] = [
        {"type": kind, "status": status, "reason": reason, "message": message}
        for kind, status, reason, message in conditions
    ]
    return {
        "metadata": {"name": "demo", "namespace": "default", "generation": generation},
        "status": {"conditions": found, "observedGeneration": observed},
    }


APPLIED = ("ResourcesApplied", "True", "ApplySucceeded", "All resources are applied.")
HEALTHY = ("ResourcesHealthy", "True", "ResourcesHealthy", "All resources are healthy.")
ROLLED_OUT = ("ResourcesProgressing", "False", "ResourcesRolledOut", "All rolled out.")


def test_applied_healthy_and_rolled_out_is_not_a_problem() -> None:
    ready = resource(APPLIED, HEALTHY, ROLLED_OUT)
    assert applied_problem(ready) is None
    assert healthy_problem(ready) is None
    assert progressing_problem(ready) is None


def test_an_earlier_generation_does_not_count_as_applied() -> None:
    problem = applied_problem(resource(APPLIED, generation=3, observed=2))
    assert problem == "generation 3 was not applied yet; the last one was 2"


@pytest.mark.parametrize("status", ["False", "Unknown", "Progressing"])
def test_only_the_status_true_counts_as_applied(status: str) -> None:
    problem = applied_problem(resource(("ResourcesApplied", status, "ApplyFailed", "no such kind")))
    assert problem == f"condition ResourcesApplied is {status} (ApplyFailed): no such kind"


def test_pending_checks_do_not_count_as_healthy() -> None:
    pending = resource(("ResourcesHealthy", "Unknown", "ChecksPending", ""))
    assert healthy_problem(pending) == "condition ResourcesHealthy is Unknown (ChecksPending)"


@pytest.mark.parametrize("status", ["True", "Unknown"])
def test_only_resources_that_are_not_progressing_are_rolled_out(status: str) -> None:
    problem = progressing_problem(resource(("ResourcesProgressing", status, "R", "m")))
    assert problem == f"condition ResourcesProgressing is {status} (R): m"


@pytest.mark.parametrize("obj", [resource(), {"metadata": {"generation": 0}}, {"status": None}])
def test_a_missing_condition_is_a_problem(obj: JsonObject) -> None:
    assert applied_problem(obj) == "condition ResourcesApplied is missing"
    assert healthy_problem(obj) == "condition ResourcesHealthy is missing"
    assert progressing_problem(obj) == "condition ResourcesProgressing is missing"


@pytest.mark.parametrize("reason", ["DeletionPending", "DeletionFailed"])
def test_the_cause_that_blocks_a_deletion_is_reported(reason: str) -> None:
    deleting = resource(("ResourcesApplied", "Progressing", reason, "ConfigMap a/b is pending"))
    assert deletion_problem(deleting) == "ConfigMap a/b is pending"


def test_other_reasons_do_not_block_a_deletion() -> None:
    assert deletion_problem(resource(APPLIED)) is None
    assert deletion_problem(resource()) is None
