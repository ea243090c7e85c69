"""Verdicts on a ManagedResource, for components that depend on its objects (spec 10 §7).

They combine the individual checks (applied, healthy, not progressing) of
`pergola.api.managed_resource_status`.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from pergola.api.conditions import FALSE, TRUE, UNKNOWN
from pergola.api.managed_resource_conditions import APPLIED, HEALTHY, PROGRESSING, Reason
from pergola.api.managed_resource_status import (
    applied_problem,
    healthy_problem,
    progressing_problem,
)
from pergola.api.objects import JsonObject, Key, generation_of, name_of
from pergola.health.conditions import condition
from pergola.health.numbers import number
from pergola.health.times import read_time

OUTDATED_STATUS: Final = "OutdatedStatus"
PROGRESSING_ROLLOUT_STUCK: Final = "ProgressingRolloutStuck"
MISSING_CONDITION: Final = "MissingManagedResourceCondition"


class CareFailure(NamedTuple):
    """The reason and message of a condition that aggregates ManagedResources."""

    reason: str
    message: str


def check_ready(resource: JsonObject) -> str | None:
    """Return why the current content does not count as applied and healthy, or None if it does."""
    return applied_problem(resource) or healthy_problem(resource)


def check_rolled_out(resource: JsonObject) -> str | None:
    """Return why the current content does not count as applied, healthy and rolled out, or None."""
    return check_ready(resource) or progressing_problem(resource)


def care(
    resource: JsonObject, *, now: datetime, progressing_threshold: timedelta | None = None
) -> CareFailure | None:
    """Return how a ManagedResource impairs the health of the Shoot, Seed or Garden, or None.

    Args:
        progressing_threshold: the maximum duration of a rollout; None reports any rollout.
    """
    outdated = _outdated(resource)
    if outdated is not None:
        return outdated
    return next(_failures(resource, now, progressing_threshold), None) or _missing(resource)


def _outdated(resource: JsonObject) -> CareFailure | None:
    observed = number(resource, "status", "observedGeneration")
    generation = generation_of(resource)
    if observed == generation:
        return None
    applied = condition(resource, APPLIED) or {}
    if applied.get("status") == FALSE and applied.get("reason") == Reason.APPLY_FAILED:
        return _said_by(applied)
    return CareFailure(
        OUTDATED_STATUS,
        f"observed generation of managed resource '{Key.of(resource)}' outdated "
        f"({observed}/{generation})",
    )


def _failures(
    resource: JsonObject, now: datetime, threshold: timedelta | None
) -> Iterator[CareFailure]:
    for kind in (APPLIED, HEALTHY):
        found = condition(resource, kind)
        if found is not None and found.get("status") in (FALSE, UNKNOWN):
            yield _said_by(found)
    rollout = condition(resource, PROGRESSING)
    if rollout is not None and rollout.get("status") in (TRUE, UNKNOWN):
        if threshold is None:
            yield _said_by(rollout)
        elif not _is_younger(rollout, now, threshold):
            yield _stuck(resource, rollout, threshold)


def _is_younger(found: JsonObject, now: datetime, threshold: timedelta) -> bool:
    since = read_time(found.get("lastTransitionTime"))
    return since is not None and now - since < threshold


def _stuck(resource: JsonObject, found: JsonObject, threshold: timedelta) -> CareFailure:
    text = f"ManagedResource {Key.of(resource)} is progressing for more than {threshold}"
    message = found.get("message")
    return CareFailure(PROGRESSING_ROLLOUT_STUCK, f"{text}: {message}" if message else text)


def _missing(resource: JsonObject) -> CareFailure | None:
    missing = [k for k in (APPLIED, HEALTHY, PROGRESSING) if condition(resource, k) is None]
    if not missing:
        return None
    return CareFailure(
        MISSING_CONDITION,
        f"ManagedResource {name_of(resource)} is missing the following condition(s), "
        f"[{', '.join(missing)}]",
    )


def _said_by(found: JsonObject) -> CareFailure:
    return CareFailure(str(found.get("reason") or ""), str(found.get("message") or ""))
