"""States of a Garden that tests wait for."""

from collections.abc import Callable

from pergola.api import marks
from pergola.api.objects import JsonObject, annotations_of, generation_of, map_at
from pergola.api.operator_v1alpha1.garden import CARE_CONDITIONS
from pergola.operator.conditions import is_true


def has_succeeded(obj: JsonObject) -> bool:
    """Return whether the last operation of a Garden, or an extension resource, succeeded."""
    operation = map_at(obj, "status", "lastOperation")
    return (operation.get("state"), operation.get("progress")) == ("Succeeded", 100)


def reconciled_after(last: JsonObject) -> Callable[[JsonObject], bool]:
    """Return whether a Garden, in its current state, was reconciled after a former state.

    Unlike an operation in progress, this remains visible. A run that began before the last request
    or change does not count. Without a request or change in the former state, the time of the run
    decides, which counts in seconds.
    """

    def time(garden: JsonObject) -> object:
        return map_at(garden, "status", "lastOperation").get("lastUpdateTime")

    def is_settled(garden: JsonObject) -> bool:
        is_newest = map_at(garden, "status").get("observedGeneration") == generation_of(garden)
        return is_newest and marks.OPERATION not in annotations_of(garden)

    def holds(garden: JsonObject) -> bool:
        is_later = not is_settled(last) or time(garden) != time(last)
        return has_succeeded(garden) and is_settled(garden) and is_later

    return holds


def is_healthy(garden: JsonObject) -> bool:
    """Return whether the four conditions that every Garden has are true."""
    return all(is_true(garden, kind) for kind in CARE_CONDITIONS)
