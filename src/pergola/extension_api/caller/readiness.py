"""Checks whether an extension has completed a request, as pure functions (spec 40 §4.1)."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from pergola.api.marks import OPERATION, TIMESTAMP
from pergola.api.objects import (
    JsonObject,
    annotations_of,
    deletion_timestamp_of,
    finalizers_of,
    generation_of,
    map_at,
)
from pergola.extension_api.caller.errors import known_codes
from pergola.extension_api.errors import Code
from pergola.health.times import read_time

# An extension removes the annotation before it reports that it is working. In between, the success
# of an earlier request looks like that of the current one.
UNSURE_SECONDS: Final = 1.0
# The status echoes another request: an extension that echoes ended in between, or was replaced by
# one that does not.
OTHER_REQUEST_SECONDS: Final = 30.0


class Verdict(NamedTuple):
    """The verdict on an object.

    Attributes:
        problem: why the object is not in the desired state; empty if it is.
        codes: the codes of its last error.
        is_error: whether the extension itself reports an error, which shortens the wait.
        unsure: how many seconds an object must remain without a problem to count.
    """

    problem: str = ""
    codes: tuple[Code, ...] = ()
    is_error: bool = False
    unsure: float = 0.0


Judge: TypeAlias = Callable[[JsonObject | None], Verdict]
"""Judges an object; None if it does not exist."""

GONE: Final = "it does not exist"


def readiness(obj: JsonObject | None, expected: str = "") -> Verdict:
    """Judge whether the last request was carried out.

    Args:
        expected: the timestamp of the awaited request; that of the object if empty.
    """
    if obj is None:
        return Verdict(GONE)
    outdated = _request_problem(obj, expected)
    if outdated:
        return Verdict(outdated)
    failed = last_error(obj)
    if failed:
        return failed._replace(problem=f"error during reconciliation: {failed.problem}")
    problem = _generation_problem(obj) or _pending_problem(obj) or _operation_problem(obj)
    return Verdict(problem) if problem else _freshness(obj)


def is_settled(obj: JsonObject, now: datetime) -> bool:
    """Return whether the last request was carried out, and long enough ago to be certain."""
    verdict = readiness(obj)
    if verdict.problem or not verdict.unsure:
        return not verdict.problem
    done = read_time(map_at(obj, "status", "lastOperation").get("lastUpdateTime"))
    # Times in the status are truncated to seconds.
    return done is not None and now - done > timedelta(seconds=verdict.unsure + 1)


def migration(obj: JsonObject | None) -> Verdict:
    """Judge whether the object was migrated away; a missing one was.

    A success counts once the request is removed: before, it may belong to an earlier request.
    """
    if obj is None:
        return Verdict()
    operation, pending = map_at(obj, "status", "lastOperation"), _pending_problem(obj)
    migrates = operation.get("type") == "Migrate"
    if migrates and operation.get("state") == "Succeeded" and not pending:
        return Verdict()
    failed = last_error(obj)
    if failed:
        return failed._replace(problem=f"error during migration: {failed.problem}", is_error=False)
    if pending and (not migrates or operation.get("state") == "Succeeded"):
        return Verdict(pending)
    now = f"{operation.get('type')} is {operation.get('state')}" if operation else "there is none"
    return Verdict(f"last operation is not a succeeded Migrate: {now}")


def deletion(obj: JsonObject | None) -> Verdict:
    """Judge whether the object is gone; the problem names what blocks its deletion."""
    if obj is None:
        return Verdict()
    failed = last_error(obj)
    if failed:
        return failed._replace(is_error=False)
    if deletion_timestamp_of(obj) is None:
        return Verdict("its deletion was not requested")
    held = ", ".join(finalizers_of(obj))
    return Verdict(f"it is held by finalizer {held}" if held else "it is being deleted")


def last_error(obj: JsonObject) -> Verdict | None:
    """Return the last error that the extension reported."""
    error = map_at(obj, "status").get("lastError")
    if not isinstance(error, dict):
        return None
    codes = error.get("codes")
    description = error.get("description") or "without a description"
    return Verdict(
        str(description), known_codes(codes if isinstance(codes, list) else ()), is_error=True
    )


def is_pending(obj: JsonObject) -> bool:
    """Return whether no extension has picked up the last request."""
    return OPERATION in annotations_of(obj)


def _request_problem(obj: JsonObject, expected: str) -> str:
    timestamp = annotations_of(obj).get(TIMESTAMP)
    if not expected or timestamp == expected:
        return ""
    seen = f'"{timestamp}"' if timestamp is not None else "absent"
    return f'annotation "{TIMESTAMP}" is {seen}, not "{expected}" as it was set'


def _generation_problem(obj: JsonObject) -> str:
    observed, generation = map_at(obj, "status").get("observedGeneration") or 0, generation_of(obj)
    if observed == generation:
        return ""
    return f"observed generation outdated ({observed}/{generation})"


def _pending_problem(obj: JsonObject) -> str:
    operation = annotations_of(obj).get(OPERATION)
    if operation is None:
        return ""
    return f'gardener operation "{operation}" is not yet picked up by controller'


def _operation_problem(obj: JsonObject) -> str:
    operation = map_at(obj, "status", "lastOperation")
    if not operation:
        return "extension did not record a last operation yet"
    state = operation.get("state")
    return "" if state == "Succeeded" else f"extension state is not succeeded but {state}"


def _freshness(obj: JsonObject) -> Verdict:
    """Judge whether the success belongs to the last request; exact if the extension echoes it."""
    asked_at = annotations_of(obj).get(TIMESTAMP)
    if asked_at is None:
        return Verdict()
    echo = map_at(obj, "status").get("observedTimestamp")
    if echo == asked_at:
        return Verdict()
    asked = read_time(asked_at)
    if asked is None:
        return Verdict(f'annotation "{TIMESTAMP}" is not an RFC 3339 time: "{asked_at}"')
    updated = map_at(obj, "status", "lastOperation").get("lastUpdateTime")
    done = read_time(updated)
    if done is None or asked.replace(microsecond=0) > done:
        return Verdict(f"extension is not reconciled yet: asked at {asked_at}, done at {updated}")
    return Verdict(unsure=OTHER_REQUEST_SECONDS if echo else UNSURE_SECONDS)
