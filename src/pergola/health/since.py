"""The start of an object's problem, as far as the object records it."""

from collections.abc import Iterator
from datetime import datetime

from pergola.api.objects import JsonObject, deletion_timestamp_of, maps_at, metadata_of
from pergola.health.conditions import failing_since
from pergola.health.times import read_time


def since(obj: JsonObject, problem: str) -> datetime | None:
    """Return when a problem began, or a later time at which it certainly existed.

    It is the time of the condition that the problem names. Otherwise, it is the last time of any
    condition, or the creation of the object.
    """
    deleted = read_time(deletion_timestamp_of(obj))
    if deleted is not None:
        return deleted
    changes = dict(_changes(obj))
    named = [time for kind, time in changes.items() if f"condition {kind} " in problem]
    if named:
        return named[0]
    return max(changes.values(), default=read_time(metadata_of(obj).get("creationTimestamp")))


def _changes(obj: JsonObject) -> Iterator[tuple[str, datetime]]:
    """Yield the type of each condition, and when it began."""
    for condition in maps_at(obj, "status", "conditions"):
        time = failing_since(condition)
        if time is not None:
            yield str(condition.get("type")), time
