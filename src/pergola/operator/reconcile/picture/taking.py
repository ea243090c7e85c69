"""Taking a picture of a Garden: a pure function of observations."""

from collections.abc import Sequence
from datetime import datetime

from pergola.api.objects import (
    JsonObject,
    deletion_timestamp_of,
    generation_of,
    map_at,
    maps_at,
    name_of,
)
from pergola.api.operator_v1alpha1.garden import CARE_CONDITIONS
from pergola.api.operator_v1alpha1.operations import OPERATIONS
from pergola.health.times import read_time
from pergola.operator.reconcile.operation import requested_by
from pergola.operator.reconcile.picture.picture import Operation, Picture
from pergola.operator.reconcile.picture.states import Live, states
from pergola.operator.reconcile.picture.steps import Step
from pergola.operator.reconcile.reconcile import IGNORE, is_ignored

_RUNNING = ("Pending", "Processing")


def picture_of(
    garden: JsonObject, steps: Sequence[Step], live: Live, now: datetime, operator: str = ""
) -> Picture:
    """Return the picture of a Garden.

    Args:
        steps: The steps of its operation, in order of their dependencies.
        live: Returns the objects that the steps wait for.
        operator: Why no operator is running; empty if one is.
    """
    operation = operation_of(garden)
    errors = tuple(maps_at(garden, "status", "lastErrors"))
    failures = {str(e["taskID"]): str(e.get("description", "")) for e in errors if "taskID" in e}
    is_due = _is_due(garden, operation)
    note = _note(garden, operation, operator, is_due=is_due)
    return Picture(
        garden=name_of(garden),
        at=now,
        is_over=operation.state not in _RUNNING and (not is_due or is_ignored(garden)),
        note=note,
        operation=operation,
        tasks=tuple(states(steps, operation, failures, live)),
        errors=errors,
        conditions=tuple(sorted(maps_at(garden, "status", "conditions"), key=_rank)),
    )


def _rank(condition: JsonObject) -> int:
    """Return the place of a condition: those that decide about readiness come first."""
    kind = condition.get("type")
    return CARE_CONDITIONS.index(kind) if kind in CARE_CONDITIONS else len(CARE_CONDITIONS)


def operation_of(garden: JsonObject) -> Operation:
    """Return the last operation of a Garden."""
    last = map_at(garden, "status", "lastOperation")
    return Operation(
        type=str(last.get("type") or ""),
        state=str(last.get("state") or ""),
        progress=int(last.get("progress") or 0),
        description=str(last.get("description") or ""),
        updated=read_time(last.get("lastUpdateTime")),
    )


def _is_due(garden: JsonObject, operation: Operation) -> bool:
    """Return whether the operator must begin another operation."""
    is_deleted = deletion_timestamp_of(garden) is not None
    observed = map_at(garden, "status").get("observedGeneration")
    return (
        not operation.type
        or (is_deleted and operation.type != "Delete")
        or observed != generation_of(garden)
        or any(each in OPERATIONS for each in requested_by(garden))
    )


def _note(garden: JsonObject, operation: Operation, operator: str, *, is_due: bool) -> str:
    if is_ignored(garden):
        return f"the annotation {IGNORE} stops all reconciliation: remove it to go on"
    if operation.state not in _RUNNING and not is_due:
        return ""
    if operator or operation.state in _RUNNING:
        return operator
    return "the operator has not begun the operation that is due: check that it runs"
