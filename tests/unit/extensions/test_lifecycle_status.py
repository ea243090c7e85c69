"""The status of extension resources: spec 40 §2.4."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api import marks
from pergola.api.objects import JsonObject, map_at
from pergola.extension_api.errors import Code, ExtensionError, RequeueAfter, SeveralErrors
from pergola.extensions.lifecycle.operation import Operation
from pergola.extensions.lifecycle.status import (
    LONGEST,
    changes,
    describe,
    failed,
    processing,
    progressing,
    succeeded,
    upper_first,
)
from pergola.kube.errors import Unreachable
from pergola.kube.patches import apply_merge_patch

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
TIME = "2026-01-02T03:04:05Z"
NETWORK: JsonObject = {
    "metadata": {"generation": 3, "annotations": {marks.TIMESTAMP: "2026-01-02T03:04:04.5Z"}}
}


def test_the_start_keeps_the_last_error_and_the_generation() -> None:
    assert processing(NETWORK, Operation.CREATE, "Network", NOW) == {
        "lastOperation": {
            "type": "Create",
            "state": "Processing",
            "progress": 1,
            "description": "Reconciling the Network",
            "lastUpdateTime": TIME,
        },
        "observedTimestamp": "2026-01-02T03:04:04.5Z",
    }


def test_an_error_is_written_twice_with_its_codes() -> None:
    codes = (Code.DEPENDENCIES, Code.CLEANUP)
    patch = failed(NETWORK, Operation.DELETE, "Network", "in use", codes, NOW)
    assert patch == {
        "lastOperation": {
            "type": "Delete",
            "state": "Error",
            "progress": 50,
            "description": "Error deleting Network: in use",
            "lastUpdateTime": TIME,
        },
        "lastError": {
            "description": "Error deleting Network: in use",
            "codes": ["ERR_INFRA_DEPENDENCIES", "ERR_CLEANUP_CLUSTER_RESOURCES"],
            "lastUpdateTime": TIME,
        },
        "observedGeneration": 3,
        "observedTimestamp": "2026-01-02T03:04:04.5Z",
    }


def test_success_removes_the_error_and_sets_the_fields_of_the_actuator() -> None:
    patch = succeeded(NETWORK, Operation.RECONCILE, "Network", {"ipFamilies": ["IPv4"]}, NOW)
    assert patch == {
        "lastOperation": {
            "type": "Reconcile",
            "state": "Succeeded",
            "progress": 100,
            "description": "Successfully reconciled Network",
            "lastUpdateTime": TIME,
        },
        "lastError": None,
        "observedGeneration": 3,
        "observedTimestamp": "2026-01-02T03:04:04.5Z",
        "ipFamilies": ["IPv4"],
    }


@pytest.mark.parametrize(
    ("operation", "texts"),
    [
        (
            Operation.CREATE,
            ("Reconciling the X", "Error reconciling X: e", "Successfully reconciled X"),
        ),
        (
            Operation.RECONCILE,
            ("Reconciling the X", "Error reconciling X: e", "Successfully reconciled X"),
        ),
        (Operation.DELETE, ("Deleting the X", "Error deleting X: e", "Successfully deleted X")),
        (Operation.MIGRATE, ("Migrating the X", "Error migrating X: e", "Successfully migrated X")),
        (Operation.RESTORE, ("Restoring the X", "Error restoring X: e", "Successfully restored X")),
    ],
)
def test_each_operation_has_its_own_descriptions(
    operation: Operation, texts: tuple[str, ...]
) -> None:
    patches = (
        processing({}, operation, "X", NOW),
        failed({}, operation, "X", "e", (), NOW),
        succeeded({}, operation, "X", None, NOW),
    )
    assert tuple(patch["lastOperation"]["description"] for patch in patches) == texts


def test_a_removed_request_is_no_longer_echoed() -> None:
    assert "observedTimestamp" not in processing({}, Operation.CREATE, "Network", NOW)
    reported = {"status": {"observedTimestamp": "before"}}
    assert processing(reported, Operation.CREATE, "Network", NOW)["observedTimestamp"] is None


def test_progress_changes_neither_type_nor_state() -> None:
    assert progressing(40, "Waiting for nodes", NOW) == {
        "lastOperation": {
            "progress": 40,
            "description": "Waiting for nodes",
            "lastUpdateTime": TIME,
        }
    }


def test_a_long_text_is_truncated() -> None:
    patch = failed({}, Operation.CREATE, "Network", "x" * 1_000_000, (), NOW)
    assert len(patch["lastError"]["description"]) == LONGEST


@pytest.mark.parametrize(
    "field",
    ["lastOperation", "lastError", "conditions", "observedGeneration", "observedTimestamp"],
)
def test_actuators_cannot_set_fields_of_the_sdk(field: str) -> None:
    with pytest.raises(ExtensionError, match=rf"status\.{field}, which the SDK writes"):
        changes({}, {"state": {}, field: None})


values = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
fields = st.dictionaries(st.sampled_from(["state", "providerStatus", "ipFamilies"]), values)


@given(fields, fields)
def test_fields_of_the_actuator_are_set_and_the_rest_is_kept(
    before: JsonObject, reported: JsonObject
) -> None:
    patch = changes({"status": before}, reported)
    after = apply_merge_patch(before, patch)
    assert after == before | reported
    assert changes({"status": after}, reported) == {}


def test_none_removes_a_field() -> None:
    assert changes({"status": {"state": {"a": 1}}}, {"state": None}) == {"state": None}


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ExtensionError("the quota is used up"), "the quota is used up"),
        (RequeueAfter(30), "requeue in 30s"),
        (RequeueAfter(0.5, ValueError("later")), "later"),
        (SeveralErrors([ExtensionError("one"), ExtensionError("two")]), "one; two"),
        (Unreachable("no answer"), "no answer"),
        (KeyError("podCIDR"), "KeyError: 'podCIDR'"),
        (ValueError(), "ValueError"),
        (ExceptionGroup("several", [ExtensionError("one"), KeyError("a")]), "one; KeyError: 'a'"),
        (FileNotFoundError(2, "No such file", "x"), "[Errno 2] No such file: 'x'"),
    ],
)
def test_error_messages_for_users_are_kept_and_bugs_get_their_type(
    error: BaseException, text: str
) -> None:
    assert describe(error) == text


def test_only_the_first_letter_is_capitalized() -> None:
    assert upper_first("error of AWS") == "Error of AWS"
    assert upper_first("") == ""


def test_the_description_of_an_error_is_that_of_the_operation() -> None:
    patch = failed({}, Operation.CREATE, "Network", "e", (), NOW)
    assert map_at(patch, "lastError")["codes"] is None
    assert patch["lastError"]["description"] == patch["lastOperation"]["description"]
