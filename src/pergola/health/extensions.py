"""Health of extension objects, BackupBuckets and BackupEntries (10 appendix A)."""

from typing import NamedTuple

from pergola.api.marks import OPERATION, TIMESTAMP
from pergola.api.objects import JsonObject, annotations_of, generation_of, map_at
from pergola.health.numbers import number
from pergola.health.times import read_time


class ExtensionFailure(NamedTuple):
    """Why an extension object is unhealthy.

    Attributes:
        codes: the codes of its last error (`ERR_…`), for callers; empty for other failures.
    """

    text: str
    codes: tuple[str, ...] = ()


def check_extension(obj: JsonObject) -> ExtensionFailure | None:
    """Return the problem of the last operation on an object, or of a newer request."""
    failed = _last_error(obj)
    if failed is not None:
        return failed
    problem = (
        _generation_problem(obj)
        or _pending_problem(obj)
        or _operation_problem(obj)
        or _timestamp_problem(obj)
    )
    return ExtensionFailure(problem) if problem else None


def _last_error(obj: JsonObject) -> ExtensionFailure | None:
    error = map_at(obj, "status").get("lastError")
    if not isinstance(error, dict):
        return None
    codes = error.get("codes")
    texts = [code for code in codes if isinstance(code, str)] if isinstance(codes, list) else []
    description = error.get("description") or "without a description"
    return ExtensionFailure(f"the last operation had an error: {description}", tuple(texts))


def _generation_problem(obj: JsonObject) -> str | None:
    observed, generation = number(obj, "status", "observedGeneration"), generation_of(obj)
    if observed == generation:
        return None
    return f"observed generation {observed} is not generation {generation}"


def _pending_problem(obj: JsonObject) -> str | None:
    annotations = annotations_of(obj)
    if OPERATION not in annotations:
        return None
    return f"annotation {OPERATION}={annotations[OPERATION]} was not picked up yet"


def _operation_problem(obj: JsonObject) -> str | None:
    operation = map_at(obj, "status", "lastOperation")
    if not operation:
        return "no operation was recorded yet: status.lastOperation is not set"
    state = operation.get("state")
    return None if state == "Succeeded" else f"last operation is {state}, expected Succeeded"


def _timestamp_problem(obj: JsonObject) -> str | None:
    """Compare with second precision: the annotation has nanoseconds, the operation only seconds."""
    annotations = annotations_of(obj)
    if TIMESTAMP not in annotations:
        return None
    text = annotations[TIMESTAMP]
    asked = read_time(text)
    if asked is None:
        return f"annotation {TIMESTAMP}={text!r} is not an RFC 3339 time"
    updated = map_at(obj, "status", "lastOperation").get("lastUpdateTime")
    done = read_time(updated)
    if done is not None and asked.replace(microsecond=0) <= done:
        return None
    return f"annotation {TIMESTAMP}={text} is after the last operation's update ({updated})"
