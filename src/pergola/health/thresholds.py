"""Failing conditions: at once, or after being `Progressing` for a time (spec 21 §2.2).

A threshold prevents short disruptions, such as a rollout, from being reported as failures. It is
measured from the moment when the condition becomes `Progressing`, even if the message changes.
"""

from datetime import datetime, timedelta

from pergola.api.conditions import FALSE, PROGRESSING
from pergola.api.objects import JsonObject
from pergola.health.times import read_time


def failing_status(
    previous: JsonObject,
    reason: str,
    *,
    now: datetime,
    threshold: timedelta | None = None,
    last_operation: JsonObject | None = None,
) -> str:
    """Return the status of a condition whose check fails.

    Args:
        previous: the stored condition.
        reason: why the check fails now.
        threshold: how long the condition may be `Progressing`; None for no time at all.
        last_operation: `status.lastOperation` of the object; disruptions are expected for some time
            after it succeeded.
    """
    if threshold is None:
        return FALSE
    match previous.get("status"):
        case "True":
            is_tolerated = True
        case "Progressing":
            is_tolerated = _has_just_succeeded(last_operation, now, threshold) or _is_recent(
                previous.get("lastTransitionTime") or previous.get("lastUpdateTime"), now, threshold
            )
        case "False":
            is_tolerated = (
                _has_just_succeeded(last_operation, now, threshold)
                or previous.get("reason") != reason
            )
        case _:
            is_tolerated = False
    return PROGRESSING if is_tolerated else FALSE


def _has_just_succeeded(operation: JsonObject | None, now: datetime, threshold: timedelta) -> bool:
    if operation is None or operation.get("state") != "Succeeded":
        return False
    return _is_recent(operation.get("lastUpdateTime"), now, threshold)


def _is_recent(time: object, now: datetime, threshold: timedelta) -> bool:
    since = read_time(time)
    return since is not None and now - since <= threshold
