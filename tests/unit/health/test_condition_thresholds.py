"""Failing with thresholds: every row of the table in spec 21 §2.2."""

from datetime import UTC, datetime, timedelta

import pytest

from pergola.api.conditions import timestamp
from pergola.api.objects import JsonObject
from pergola.health import failing_status

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def ago(seconds: int) -> str:
    return timestamp(NOW - timedelta(seconds=seconds))


def condition(status: str, *, since: int = 3600, **fields: object) -> JsonObject:
    return {"status": status, "reason": "Broken", "lastTransitionTime": ago(since), **fields}


def succeeded(seconds: int) -> JsonObject:
    return {"type": "Reconcile", "state": "Succeeded", "lastUpdateTime": ago(seconds)}


def failing(
    previous: JsonObject,
    threshold: timedelta | None = MINUTE,
    operation: JsonObject | None = None,
    reason: str = "Broken",
) -> str:
    return failing_status(previous, reason, now=NOW, threshold=threshold, last_operation=operation)


@pytest.mark.parametrize("status", ["True", "Progressing", "False", "Unknown"])
def test_without_a_threshold_a_failure_is_reported_at_once(status: str) -> None:
    assert failing(condition(status, since=0), threshold=None) == "False"


def test_a_healthy_condition_progresses_first() -> None:
    assert failing(condition("True")) == "Progressing"


@pytest.mark.parametrize(
    ("since", "status"), [(0, "Progressing"), (60, "Progressing"), (61, "False")]
)
def test_progressing_lasts_as_long_as_the_threshold(since: int, status: str) -> None:
    assert failing(condition("Progressing", since=since)) == status


def test_the_period_begins_at_the_last_update_if_the_transition_is_unknown() -> None:
    young = condition("Progressing", lastTransitionTime=None, lastUpdateTime=ago(10))
    assert failing(young) == "Progressing"


@pytest.mark.parametrize("time", [None, "", "yesterday", 7])
def test_a_period_of_unknown_length_has_expired(time: object) -> None:
    assert failing(condition("Progressing", lastTransitionTime=time)) == "False"


@pytest.mark.parametrize("status", ["Progressing", "False"])
@pytest.mark.parametrize(("age", "expected"), [(30, "Progressing"), (61, "False")])
def test_disruptions_after_an_operation_are_tolerated(status: str, age: int, expected: str) -> None:
    assert failing(condition(status), operation=succeeded(age)) == expected


@pytest.mark.parametrize("state", ["Processing", "Error", "Failed"])
def test_only_an_operation_that_succeeded_counts(state: str) -> None:
    operation = succeeded(0) | {"state": state}
    assert failing(condition("False"), operation=operation) == "False"


def test_a_different_failure_progresses_again() -> None:
    assert failing(condition("False"), reason="BrokenOtherwise") == "Progressing"
    assert failing(condition("False")) == "False"


@pytest.mark.parametrize("previous", [condition("Unknown"), {}])
def test_a_condition_that_was_not_healthy_fails_at_once(previous: JsonObject) -> None:
    assert failing(previous, operation=succeeded(0)) == "False"
