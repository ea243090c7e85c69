"""From the results of checks to a condition: the table of spec 40 §2.6, row by row."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.conditions import timestamp
from pergola.api.objects import JsonObject
from pergola.extension_api.errors import Code
from pergola.extensions.health_checks.aggregate import ConditionUpdate, Result, aggregate, unable
from pergola.extensions.health_checks.checks import Verdict

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
HEALTHY = Result("fine", Verdict("True"))
BROKEN = Result("agent", Verdict("False", "the agent is down", (Code.DEPENDENCIES,)))


def rolling(threshold: float = 600.0) -> Result:
    return Result("rollout", Verdict("Progressing", "2 of 3 are ready", (), threshold))


def raised(text: str = "no route to host") -> Result:
    return Result("network", RuntimeError(text))


def old(status: str, age: float) -> JsonObject:
    since = timestamp(NOW - timedelta(seconds=age))
    return {"type": "X", "status": status, "lastTransitionTime": since}


def test_if_no_check_could_run_the_condition_is_unknown_with_the_error() -> None:
    assert unable(ValueError("spec.shoot is not an object")) == ConditionUpdate(
        "Unknown",
        "ConditionCheckError",
        "unable to execute any health check: spec.shoot is not an object",
    )


def test_one_check_that_raised_makes_it_unknown_in_the_singular() -> None:
    assert aggregate([HEALTHY, raised()], None, NOW) == ConditionUpdate(
        "Unknown", "ConditionCheckError", "failed to execute 1 health check: no route to host."
    )


def test_several_checks_that_raised_are_numbered() -> None:
    assert aggregate([raised("a"), raised("b.")], None, NOW).message == (
        "failed to execute 2 health checks: 1) a. 2) b."
    )


def test_an_unhealthy_check_makes_it_false_with_its_codes() -> None:
    assert aggregate([HEALTHY, BROKEN], None, NOW) == ConditionUpdate(
        "False", "HealthCheckUnsuccessful", "the agent is down.", (Code.DEPENDENCIES,)
    )


def test_codes_of_all_unhealthy_checks_appear_once() -> None:
    other = Result("quota", Verdict("False", "q", (Code.QUOTA_EXCEEDED, Code.DEPENDENCIES)))
    codes = aggregate([BROKEN, other], None, NOW).codes
    assert codes == (Code.DEPENDENCIES, Code.QUOTA_EXCEEDED)


@pytest.mark.parametrize(
    ("before", "status"),
    [
        (None, "Progressing"),
        (old("True", 1000), "Progressing"),
        (old("Progressing", 60), "Progressing"),
        (old("Progressing", 61), "False"),
        (old("Unknown", 60), "Progressing"),
        (old("False", 1), "False"),
        (old("False", 61), "False"),
        ({"type": "X", "status": "Progressing"}, "False"),
    ],
)
def test_progressing_is_tolerated_until_the_threshold(
    before: JsonObject | None, status: str
) -> None:
    said = aggregate([HEALTHY, rolling(60)], before, NOW)
    reason = "HealthCheckProgressing" if status == "Progressing" else "HealthCheckUnsuccessful"
    assert said == ConditionUpdate(status, reason, "2 of 3 are ready.")


def test_the_smallest_threshold_counts() -> None:
    said = aggregate([rolling(600), rolling(10)], old("Progressing", 11), NOW)
    assert said.status == "False"


@given(
    st.lists(st.sampled_from([HEALTHY, BROKEN, rolling(100)]), min_size=1, max_size=40),
    st.floats(10, 200),
)
def test_progressing_never_lasts_longer_than_the_threshold(
    outcomes: list[Result], pause: float
) -> None:
    """Check a condition again and again: without a success, it becomes False and stays so."""
    condition: JsonObject | None = None
    since_healthy, now = 0.0, NOW
    for outcome in outcomes:
        now += timedelta(seconds=pause)
        said = aggregate([outcome], condition, now)
        was_false = condition is not None and condition["status"] == "False"
        if said.status == "True":
            since_healthy = 0.0
        else:
            since_healthy += pause
            assert said.status == "False" or since_healthy <= 100 + pause
            assert said.status == "False" or not was_false
        if condition is None or condition["status"] != said.status:
            condition = {"status": said.status, "lastTransitionTime": timestamp(now)}


def test_codes_of_progressing_checks_count_as_well() -> None:
    codes = (Code.QUOTA_EXCEEDED,)
    slow = Result("machines", Verdict("Progressing", "1 of 2", codes, threshold=60.0))
    assert aggregate([slow], None, NOW).codes == codes
    assert aggregate([slow, BROKEN], None, NOW).codes == (Code.DEPENDENCIES, *codes)


def test_if_all_checks_succeed_the_condition_is_true() -> None:
    assert aggregate([HEALTHY, HEALTHY], None, NOW) == ConditionUpdate(
        "True", "HealthCheckSuccessful", "All health checks successful"
    )


def test_groups_are_named_only_if_there_are_several() -> None:
    said = aggregate([raised("x"), BROKEN, rolling(), rolling()], None, NOW)
    assert said.message == (
        "failed to execute 1 health check: Unable to execute check(s): x. Failed check(s): "
        "the agent is down. Progressing check(s): 1) 2 of 3 are ready. 2) 2 of 3 are ready."
    )


def test_a_check_without_a_detail_is_reported_by_its_name() -> None:
    assert aggregate([Result("agent", Verdict("False"))], None, NOW).message == "agent."


OUTCOMES = st.sampled_from([HEALTHY, BROKEN, rolling(), rolling(1.0), raised()])


@given(st.lists(OUTCOMES, max_size=6), st.randoms())
def test_the_order_of_checks_does_not_change_the_status(
    results: list[Result], random: Random
) -> None:
    shuffled = list(results)
    random.shuffle(shuffled)
    one, other = aggregate(results, None, NOW), aggregate(shuffled, None, NOW)
    assert (one.status, one.reason) == (other.status, other.reason)
    assert (one.status == "True") == all(result is HEALTHY for result in results)


@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
def test_the_only_check_of_a_condition_uses_its_own_texts(status: Any) -> None:
    verdict = Verdict(status, "tcp 443 is missing", (Code.CONFIGURATION_PROBLEM,), reason="Rules")
    assert aggregate([Result("rules", verdict)], None, NOW) == ConditionUpdate(
        status, "Rules", "tcp 443 is missing", (Code.CONFIGURATION_PROBLEM,)
    )


def test_one_of_several_checks_uses_the_common_texts() -> None:
    cannot_tell = Result("rules", Verdict("Unknown", "a prefix list is used", reason="Rules"))
    assert aggregate([HEALTHY, cannot_tell], None, NOW) == ConditionUpdate(
        "Unknown", "ConditionCheckError", "failed to execute 1 health check: a prefix list is used."
    )
    fine = Result("rules", Verdict("True", "with a note", reason="Rules"))
    assert aggregate([HEALTHY, fine], None, NOW).message == "All health checks successful"


def test_a_check_with_status_unknown_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="reason"):
        Verdict("Unknown", "who knows")


def test_a_check_with_status_progressing_needs_a_threshold() -> None:
    with pytest.raises(ValueError, match="threshold"):
        Verdict("Progressing", "wait and see")
