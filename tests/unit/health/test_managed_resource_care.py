"""Conclusions from a ManagedResource's status for its dependants (spec 10 §7)."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.conditions import timestamp
from pergola.api.managed_resource_conditions import APPLIED, HEALTHY, PROGRESSING
from pergola.api.objects import JsonObject
from pergola.health import CareFailure, care, check_ready, check_rolled_out

Damage = Callable[[st.DataObject, Sequence[JsonObject]], JsonObject]

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
THRESHOLD = timedelta(minutes=20)
GOOD = {APPLIED: "True", HEALTHY: "True", PROGRESSING: "False"}


def resource(
    statuses: dict[str, str] | None = None,
    *,
    observed: int = 3,
    reason: str = "Because",
    age: timedelta = timedelta(),
    **changes: Any,
) -> JsonObject:
    conditions = [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": f"message of {kind}",
            "lastTransitionTime": timestamp(NOW - age),
        }
        | changes
        for kind, status in (GOOD | (statuses or {})).items()
        if status
    ]
    return {
        "metadata": {"name": "addons", "namespace": "shoot--a--b", "generation": 3},
        "status": {"observedGeneration": observed, "conditions": conditions},
    }


def cared(obj: JsonObject, threshold: timedelta | None = THRESHOLD) -> CareFailure | None:
    return care(obj, now=NOW, progressing_threshold=threshold)


# Must hold


@pytest.mark.parametrize("observed", [2, 4])
def test_a_resource_applied_in_another_generation_is_not_ready(observed: int) -> None:
    outdated = resource(observed=observed)

    assert "generation 3" in (check_ready(outdated) or "")
    assert check_ready(resource()) is None


@pytest.mark.parametrize("status", ["Unknown", "False", ""])
def test_pending_checks_are_not_ready(status: str) -> None:
    pending = resource({HEALTHY: status}, reason="ChecksPending")

    assert HEALTHY in (check_ready(pending) or "")


def test_successful_checks_of_earlier_content_do_not_count() -> None:
    changed = resource({APPLIED: "Progressing"}, observed=3, reason="ApplyProgressing")

    assert APPLIED in (check_ready(changed) or "")


@pytest.mark.parametrize("status", ["True", "Unknown"])
def test_a_rollout_is_tolerated_until_the_threshold(status: str) -> None:
    def found(age: timedelta) -> CareFailure | None:
        return cared(resource({PROGRESSING: status}, age=age))

    assert found(THRESHOLD - timedelta(seconds=1)) is None
    assert found(THRESHOLD) == CareFailure(
        "ProgressingRolloutStuck",
        "ManagedResource shoot--a--b/addons is progressing for more than 0:20:00: "
        f"message of {PROGRESSING}",
    )


# The waits


@pytest.mark.parametrize("status", ["True", "Unknown", ""])
def test_a_rollout_is_ready_but_not_rolled_out(status: str) -> None:
    rolling = resource({PROGRESSING: status})

    assert check_ready(rolling) is None
    assert PROGRESSING in (check_rolled_out(rolling) or "")


def test_a_resource_that_is_not_ready_is_not_rolled_out() -> None:
    assert check_rolled_out(resource()) is None
    assert check_rolled_out(resource({HEALTHY: "False"})) is not None


# Care


@pytest.mark.parametrize("threshold", [None, THRESHOLD])
def test_a_healthy_resource_affects_nothing(threshold: timedelta | None) -> None:
    assert cared(resource(), threshold) is None


def test_an_outdated_status_is_reported() -> None:
    assert cared(resource({HEALTHY: "False"}, observed=2)) == CareFailure(
        "OutdatedStatus",
        "observed generation of managed resource 'shoot--a--b/addons' outdated (2/3)",
    )


def test_a_failed_apply_explains_an_outdated_status() -> None:
    failed = resource({APPLIED: "False"}, observed=2, reason="ApplyFailed")

    assert cared(failed) == CareFailure("ApplyFailed", f"message of {APPLIED}")


@pytest.mark.parametrize(
    ("status", "reason"), [("False", "DecodingFailed"), ("Progressing", "ApplyFailed")]
)
def test_other_conditions_do_not_explain_an_outdated_status(status: str, reason: str) -> None:
    outdated = cared(resource({APPLIED: status}, observed=2, reason=reason))

    assert outdated is not None
    assert outdated.reason == "OutdatedStatus"


@pytest.mark.parametrize("status", ["False", "Unknown"])
@pytest.mark.parametrize("kind", [APPLIED, HEALTHY])
def test_a_false_condition_is_passed_on(kind: str, status: str) -> None:
    assert cared(resource({kind: status})) == CareFailure("Because", f"message of {kind}")


def test_an_apply_in_progress_is_tolerated() -> None:
    assert cared(resource({APPLIED: "Progressing"})) is None


@pytest.mark.parametrize(
    ("statuses", "blamed"),
    [
        ({APPLIED: "False", HEALTHY: "False", PROGRESSING: "True"}, APPLIED),
        ({HEALTHY: "False", PROGRESSING: "True"}, HEALTHY),
        ({HEALTHY: "", PROGRESSING: "True"}, PROGRESSING),
    ],
)
def test_conditions_are_checked_in_order_and_missing_ones_last(
    statuses: dict[str, str], blamed: str
) -> None:
    found = cared(resource(statuses), threshold=None)

    assert found == CareFailure("Because", f"message of {blamed}")


@pytest.mark.parametrize("status", ["True", "Unknown"])
def test_without_a_threshold_a_rollout_fails_at_once(status: str) -> None:
    found = cared(resource({PROGRESSING: status}), threshold=None)

    assert found == CareFailure("Because", f"message of {PROGRESSING}")


@pytest.mark.parametrize("time", [None, "", "yesterday", 7])
def test_a_rollout_of_unknown_age_is_stuck(time: object) -> None:
    found = cared(resource({PROGRESSING: "True"}, lastTransitionTime=time, message=None))

    assert found == CareFailure(
        "ProgressingRolloutStuck",
        "ManagedResource shoot--a--b/addons is progressing for more than 0:20:00",
    )


@pytest.mark.parametrize(
    ("absent", "names"),
    [
        ([APPLIED], "ResourcesApplied"),
        ([PROGRESSING, HEALTHY], "ResourcesHealthy, ResourcesProgressing"),
        (
            [APPLIED, HEALTHY, PROGRESSING],
            "ResourcesApplied, ResourcesHealthy, ResourcesProgressing",
        ),
    ],
)
def test_missing_conditions_are_listed(absent: list[str], names: str) -> None:
    assert cared(resource(dict.fromkeys(absent, ""))) == CareFailure(
        "MissingManagedResourceCondition",
        f"ManagedResource addons is missing the following condition(s), [{names}]",
    )


RESOURCES = [resource(), resource({PROGRESSING: "True"}), resource({HEALTHY: "False"})]


@given(st.data())
def test_a_malformed_resource_never_raises(damage: Damage, data: st.DataObject) -> None:
    broken = damage(data, RESOURCES)

    assert cared(broken) is None or check_rolled_out(broken) is not None
