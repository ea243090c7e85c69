"""Conditions of any object: initializing, changing and merging them (spec 10 §2.4).

Conditions are plain JSON, so unknown fields are kept. A condition that is set to the same value
keeps its times: the status of an unchanged object needs no write.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from pergola.api.objects import JsonObject

TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"
PROGRESSING: Final = "Progressing"

LONGEST_MESSAGE: Final = 32_768
"""The maximum number of characters that the schemas of conditions accept."""

INITIALIZED: Final = "ConditionInitialized"
INITIALIZED_MESSAGE: Final = (
    "The condition has been initialized but its semantic check has not been performed yet."
)
_NO_REASON: Final = "Unspecified"
_NO_MESSAGE: Final = "No message given."


def get_condition(conditions: Iterable[JsonObject], kind: str) -> JsonObject | None:
    """Return the condition of a type, or None."""
    return next((c for c in conditions if c.get("type") == kind), None)


def set_condition(
    conditions: Sequence[JsonObject],
    kind: str,
    *,
    status: str,
    reason: str,
    message: str,
    now: datetime,
    codes: Sequence[str] = (),
) -> list[JsonObject]:
    """Return a new list with this condition, which replaces the one of its type or is appended."""
    condition = get_condition(conditions, kind) or init_condition(kind, now)
    updated = update_condition(
        condition, status=status, reason=reason, message=message, now=now, codes=codes
    )
    return merge_conditions(conditions, updated)


def init_condition(kind: str, now: datetime) -> JsonObject:
    """Return a condition that has not been determined yet."""
    time = timestamp(now)
    return {
        "type": kind,
        "status": UNKNOWN,
        "lastTransitionTime": time,
        "lastUpdateTime": time,
        "reason": INITIALIZED,
        "message": INITIALIZED_MESSAGE,
    }


def update_condition(
    condition: JsonObject,
    *,
    status: str,
    reason: str,
    message: str,
    now: datetime,
    codes: Sequence[str] = (),
) -> JsonObject:
    """Return a new condition with this content.

    `lastTransitionTime` changes with the status, and `lastUpdateTime` with the reason, the message
    or the codes. All other fields are kept. A message that is too long for a condition is
    truncated, and placeholders replace an empty reason or message.
    """
    content = {"reason": reason or _NO_REASON, "message": message[:LONGEST_MESSAGE] or _NO_MESSAGE}
    updated = {**condition, "status": status, **content}
    if codes:
        updated["codes"] = list(codes)
    else:
        updated.pop("codes", None)
    if condition.get("status") != status or "lastTransitionTime" not in condition:
        updated["lastTransitionTime"] = timestamp(now)
    if _content(condition) != _content(updated) or "lastUpdateTime" not in condition:
        updated["lastUpdateTime"] = timestamp(now)
    return updated


def merge_conditions(existing: Iterable[JsonObject], *new: JsonObject) -> list[JsonObject]:
    """Return a new list: conditions replace those of their type, and new types are appended."""
    merged = {c.get("type"): c for c in existing}
    merged.update((c.get("type"), c) for c in new)
    return list(merged.values())


def timestamp(time: datetime) -> str:
    """Format a time as the API server does: UTC, whole seconds, `Z`."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _content(condition: JsonObject) -> tuple[object, object, object]:
    return condition.get("reason"), condition.get("message"), condition.get("codes") or []
