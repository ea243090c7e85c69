"""Conditions that fail: at once, or after a time for which they are `Progressing` (spec 21 §2.2).

A threshold keeps short disruptions, such as a rollout, from being reported as failures. Its period
begins when the condition becomes `Progressing`, whatever the message says meanwhile.
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
        previous: the condition as it is stored.
        reason: why the check fails now.
        threshold: the time for which the condition may be `Progressing`; None for no time at all.
        last_operation: `status.lastOperation` of the object; disruptions are expected for a while
            after it has succeeded.
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
