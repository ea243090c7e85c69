"""From verdicts to conditions, with their times and thresholds (spec 21 §2.1, §2.2 'Must hold')."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pergola.api.conditions import get_condition, timestamp
from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1.garden import CARE_CONDITIONS
from pergola.health import CareFailure
from pergola.operator.care.check import Unable, Verdict
from pergola.operator.care.conditions import conditions_of, reasons_of

API, RUNTIME, VIRTUAL, OBSERVABILITY = CARE_CONDITIONS
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DOWN = CareFailure("Down", "It is down.")


def after(seconds: int) -> datetime:
    return NOW + timedelta(seconds=seconds)


def garden(*conditions: JsonObject, operation: JsonObject | None = None) -> JsonObject:
    return {"status": {"conditions": [*conditions], "lastOperation": operation}}


def healthy(since: timedelta = timedelta(hours=1)) -> JsonObject:
    [condition] = conditions_of(garden(), {RUNTIME: None}, {}, NOW - since)
    return condition


def run(
    condition: JsonObject,
    verdict: Verdict,
    now: datetime,
    *,
    threshold: timedelta | None = MINUTE,
    operation: JsonObject | None = None,
) -> JsonObject:
    """Return the condition after one more run."""
    thresholds = {} if threshold is None else {RUNTIME: threshold}
    found = garden(condition, operation=operation)
    [updated] = conditions_of(found, {RUNTIME: verdict}, thresholds, now)
    return updated


def test_a_failure_progresses_until_the_threshold_and_recovers_at_once() -> None:
    first = run(healthy(), DOWN, NOW)
    assert (first["status"], first["lastTransitionTime"]) == ("Progressing", timestamp(NOW))
    later = run(first, CareFailure("Down", "It is still down."), after(59))
    assert (later["status"], later["message"]) == ("Progressing", "It is still down.")
    failed = run(later, DOWN, after(61))
    assert (failed["status"], failed["lastTransitionTime"]) == ("False", timestamp(after(61)))
    assert run(failed, None, after(62))["status"] == "True"


def test_without_a_threshold_a_failure_is_false_at_once() -> None:
    assert run(healthy(), DOWN, NOW, threshold=None)["status"] == "False"


def test_changing_messages_do_not_delay_the_failure() -> None:
    condition = run(healthy(), DOWN, NOW)
    for seconds in (20, 40, 60):
        condition = run(condition, CareFailure("Down", f"{seconds} of 60"), after(seconds))
        assert condition["status"] == "Progressing"
        assert condition["lastUpdateTime"] == timestamp(after(seconds))
    assert run(condition, CareFailure("Down", "61 of 60"), after(61))["status"] == "False"


def test_a_failure_after_an_operation_progresses() -> None:
    failed = run(healthy(), DOWN, NOW, threshold=None)
    operation = {"state": "Succeeded", "lastUpdateTime": timestamp(after(600))}
    assert run(failed, DOWN, after(630), operation=operation)["status"] == "Progressing"
    assert run(failed, DOWN, after(661), operation=operation)["status"] == "False"


def test_a_change_of_only_the_status_is_an_update() -> None:
    progressing = run(healthy(), DOWN, NOW)
    failed = run(progressing, DOWN, after(61))
    assert failed["lastUpdateTime"] == timestamp(after(61))


def test_an_unchanged_condition_keeps_its_times() -> None:
    condition = healthy()
    assert run(condition, None, after(60)) == condition


def test_a_check_that_could_not_be_executed_is_unknown() -> None:
    found = run(healthy(), Unable("failed listing ManagedResources"), NOW)
    assert (found["status"], found["reason"], found["message"]) == (
        "Unknown",
        "ConditionCheckError",
        "failed listing ManagedResources",
    )
    assert run(found, DOWN, after(1))["status"] == "False"


@pytest.mark.parametrize(
    ("condition", "reason", "message"),
    [
        (
            API,
            "HealthzRequestSucceeded",
            "API server /healthz endpoint responded with success status code.",
        ),
        (RUNTIME, "RuntimeComponentsRunning", "All runtime components are healthy."),
        (VIRTUAL, "VirtualComponentsRunning", "All virtual garden components are healthy."),
        (
            OBSERVABILITY,
            "ObservabilityComponentsRunning",
            "All observability components are healthy.",
        ),
    ],
)
def test_healthy_conditions_have_a_message(condition: str, reason: str, message: str) -> None:
    [found] = conditions_of(garden(), {condition: None}, {}, NOW)
    assert found == {
        "type": condition,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamp(NOW),
        "lastUpdateTime": timestamp(NOW),
    }


def test_conditions_of_other_controllers_are_unchanged() -> None:
    other: dict[str, Any] = {"type": "Other", "status": "False", "added": {"by": "others"}}
    found = conditions_of(garden(other), dict.fromkeys(CARE_CONDITIONS), {}, NOW)
    assert get_condition(found, "Other") == other
    assert [each["type"] for each in found] == ["Other", *CARE_CONDITIONS]


def test_reasons_follow_from_the_status() -> None:
    assert reasons_of(garden(healthy(), {"type": "Other"})) == {
        RUNTIME: "RuntimeComponentsRunning",
        "Other": "",
    }
