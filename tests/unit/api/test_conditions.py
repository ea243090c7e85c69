from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api import conditions as api
from pergola.api.conditions import get_condition, merge_conditions, set_condition
from pergola.api.managed_resource_conditions import APPLIED, HEALTHY, PROGRESSING, Reason
from pergola.api.objects import JsonObject

THEN = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
NOW = THEN + timedelta(minutes=5)
OLD, NEW = "2026-03-01T12:00:00Z", "2026-03-01T12:05:00Z"


def condition(**changes: Any) -> JsonObject:
    content: dict[str, Any] = {"status": "True", "reason": "Good", "message": "Good.", "now": THEN}
    [made] = set_condition([], APPLIED, **(content | changes))
    return made


def test_a_condition_starts_as_unknown() -> None:
    assert api.init_condition(APPLIED, THEN) == {
        "type": APPLIED,
        "status": "Unknown",
        "reason": "ConditionInitialized",
        "message": api.INITIALIZED_MESSAGE,
        "lastTransitionTime": OLD,
        "lastUpdateTime": OLD,
    }


@pytest.mark.parametrize(
    ("change", "transition", "update"),
    [
        ({"status": "False"}, NEW, OLD),
        ({"reason": "ApplyFailed"}, OLD, NEW),
        ({"message": "Something happened."}, OLD, NEW),
        ({"codes": ["ERR_CONFIGURATION_PROBLEM"]}, OLD, NEW),
        ({"status": "False", "reason": "ApplyFailed"}, NEW, NEW),
        ({}, OLD, OLD),
    ],
    ids=["status", "reason", "message", "codes", "status and reason", "nothing"],
)
def test_each_timestamp_changes_only_with_its_own_fields(
    change: dict[str, Any], transition: str, update: str
) -> None:
    content = {"status": "True", "reason": "Good", "message": "Good."} | change

    [changed] = set_condition([condition()], APPLIED, now=NOW, **content)

    assert (changed["lastTransitionTime"], changed["lastUpdateTime"]) == (transition, update)
    assert changed.items() >= content.items()


def test_reporting_the_same_condition_again_changes_no_byte() -> None:
    before = [condition(codes=["ERR_A"])]

    after = set_condition(
        before,
        APPLIED,
        status="True",
        reason="Good",
        message="Good.",
        codes=["ERR_A"],
        now=NOW,
    )

    assert after == before


def test_codes_that_no_longer_apply_are_removed() -> None:
    cleared = api.update_condition(
        condition(codes=["ERR_A"]), status="True", reason="Good", message="Good.", now=NOW
    )

    assert "codes" not in cleared


def test_unknown_fields_of_a_condition_are_kept() -> None:
    foreign = condition() | {"observedGeneration": 7}

    [changed] = set_condition(
        [foreign], APPLIED, status="False", reason="ApplyFailed", message="No.", now=NOW
    )

    assert changed["observedGeneration"] == 7


def test_a_condition_without_times_gets_them() -> None:
    bare = {"type": APPLIED, "status": "True", "reason": "Good", "message": "Good."}

    [changed] = set_condition(
        [bare], APPLIED, status="True", reason="Good", message="Good.", now=NOW
    )

    assert (changed["lastTransitionTime"], changed["lastUpdateTime"]) == (NEW, NEW)


def test_merging_replaces_conditions_in_place_and_appends_new_ones() -> None:
    a, b, c = ({"type": name, "status": "True"} for name in "abc")
    newer = {"type": "a", "status": "False"}

    assert merge_conditions([a, b], c, newer) == [newer, b, c]


def test_a_fresh_managed_resource_lists_healthy_progressing_applied() -> None:
    items: list[JsonObject] = []
    for kind in (HEALTHY, PROGRESSING):
        items = set_condition(
            items, kind, status="Unknown", reason=Reason.CHECKS_PENDING, message="", now=NOW
        )
    items = set_condition(
        items, APPLIED, status="Progressing", reason=Reason.APPLY_PROGRESSING, message="", now=NOW
    )

    assert [c["type"] for c in items] == [HEALTHY, PROGRESSING, APPLIED]


def test_arguments_are_never_modified() -> None:
    before = [condition()]

    set_condition(before, APPLIED, status="False", reason="x", message="x", now=NOW)

    assert before == [condition()]


def test_times_are_written_in_utc_and_whole_seconds() -> None:
    cest = timezone(timedelta(hours=2))

    assert api.timestamp(datetime(2026, 7, 1, 14, 0, 0, 999, tzinfo=cest)) == "2026-07-01T12:00:00Z"


def test_get_condition_returns_none_for_an_absent_condition() -> None:
    assert get_condition([condition()], HEALTHY) is None


def test_reasons_of_kinds_are_spelled_as_clients_expect() -> None:
    made = [Reason.missing("Pod"), Reason.unhealthy("Pod"), Reason.progressing("Pod")]

    assert made == ["PodMissing", "PodUnhealthy", "PodProgressing"]


CONTENT = st.fixed_dictionaries(
    {
        "status": st.sampled_from([api.TRUE, api.FALSE, api.UNKNOWN, api.PROGRESSING]),
        "reason": st.sampled_from(["A", "B"]),
        "message": st.sampled_from(["a", "b"]),
        "codes": st.sampled_from([[], ["X"]]),
    }
)


@given(st.lists(st.tuples(st.sampled_from("xyz"), CONTENT), max_size=8))
def test_setting_twice_changes_nothing_the_second_time(
    steps: list[tuple[str, dict[str, Any]]],
) -> None:
    items: list[JsonObject] = []
    for kind, content in steps:
        items = set_condition(items, kind, now=THEN, **content)
        assert set_condition(items, kind, now=NOW, **content) == items
    assert len({c["type"] for c in items}) == len(items)


def test_a_condition_without_a_message_gets_a_placeholder() -> None:
    [found] = set_condition([], APPLIED, status="False", reason="", message="", now=NOW)
    assert (found["reason"], found["message"]) == ("Unspecified", "No message given.")
