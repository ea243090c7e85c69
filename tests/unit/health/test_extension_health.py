"""Extension objects, BackupBuckets and BackupEntries (spec 10 appendix A)."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.marks import OPERATION, TIMESTAMP
from pergola.api.objects import JsonObject
from pergola.health import ExtensionFailure, check_extension

Damage = Callable[[st.DataObject, Sequence[JsonObject]], JsonObject]


def extension(annotations: dict[str, str] | None = None, **status: Any) -> JsonObject:
    operation = {"state": "Succeeded", "lastUpdateTime": "2026-03-01T12:00:00Z"}
    return {
        "metadata": {"name": "it", "generation": 3, "annotations": annotations or {}},
        "status": {"observedGeneration": 3, "lastOperation": operation} | status,
    }


def stamped(timestamp: str, **operation: object) -> JsonObject:
    obj = extension({TIMESTAMP: timestamp})
    obj["status"]["lastOperation"] |= operation
    return obj


def text(obj: JsonObject) -> str:
    failure = check_extension(obj)
    return failure.text if failure else ""


def test_an_extension_whose_last_operation_succeeded_is_healthy() -> None:
    assert check_extension(extension()) is None
    assert check_extension(extension(lastError=None)) is None


def test_the_last_error_is_reported_with_its_codes() -> None:
    error = {"description": "no quota left", "codes": ["ERR_INFRA_QUOTA_EXCEEDED", "ERR_OTHER"]}

    assert check_extension(extension(lastError=error)) == ExtensionFailure(
        "the last operation had an error: no quota left",
        ("ERR_INFRA_QUOTA_EXCEEDED", "ERR_OTHER"),
    )


def test_the_last_error_comes_before_everything_else() -> None:
    error = {"description": "no quota left"}
    worse = extension({OPERATION: "reconcile"}, lastError=error, observedGeneration=1)

    assert check_extension(worse) == ExtensionFailure(
        "the last operation had an error: no quota left"
    )


@pytest.mark.parametrize("observed", [2, 4])
def test_another_generation_is_unhealthy(observed: int) -> None:
    assert text(extension(observedGeneration=observed)) == (
        f"observed generation {observed} is not generation 3"
    )


@pytest.mark.parametrize("state", ["Processing", "Error", "Failed", "Pending", "Aborted"])
def test_an_operation_that_did_not_succeed_is_unhealthy(state: str) -> None:
    assert f"last operation is {state}" in text(extension(lastOperation={"state": state}))


@pytest.mark.parametrize("operation", [None, {}])
def test_no_operation_at_all_is_unhealthy(operation: JsonObject | None) -> None:
    assert "status.lastOperation is not set" in text(extension(lastOperation=operation))


# Must hold


@pytest.mark.parametrize("operation", ["reconcile", "migrate", "wait-for-state", ""])
def test_a_pending_operation_is_unhealthy_although_the_last_one_succeeded(operation: str) -> None:
    assert "was not picked up yet" in text(extension({OPERATION: operation}))


@pytest.mark.parametrize(
    "timestamp", ["2026-03-01T12:00:01Z", "2026-03-01T12:00:01.000000001Z", "2027-01-01T00:00:00Z"]
)
def test_a_timestamp_after_the_last_operation_is_unhealthy(timestamp: str) -> None:
    assert f"{timestamp} is after" in text(stamped(timestamp))


@pytest.mark.parametrize(
    "timestamp",
    [
        "2026-03-01T12:00:00Z",
        "2026-03-01T12:00:00.999999999Z",
        "2026-03-01T13:00:00.5+01:00",
        "2026-03-01T11:59:59.1Z",
    ],
)
def test_a_timestamp_of_the_same_second_or_before_is_healthy(timestamp: str) -> None:
    assert check_extension(stamped(timestamp)) is None


@pytest.mark.parametrize(
    "timestamp",
    ["", "yesterday", "2026-02-30T12:00:00Z", "2026-03-01", "2026-03-01T11:00:00", "1772366400"],
)
def test_a_timestamp_that_cannot_be_read_is_unhealthy(timestamp: str) -> None:
    assert "is not an RFC 3339 time" in text(stamped(timestamp))


@pytest.mark.parametrize("updated", [None, "", "never"])
def test_a_timestamp_is_after_an_operation_without_a_time(updated: object) -> None:
    assert "is after" in text(stamped("2026-03-01T12:00:00Z", lastUpdateTime=updated))


ERROR = {"description": "no quota left", "codes": ["ERR_INFRA_QUOTA_EXCEEDED"]}


EXTENSIONS = [extension(), extension(lastError=ERROR), stamped("2026-03-01T12:00:00Z")]


@given(st.data())
def test_a_malformed_extension_never_raises(damage: Damage, data: st.DataObject) -> None:
    assert check_extension(damage(data, EXTENSIONS)) != ExtensionFailure("")
