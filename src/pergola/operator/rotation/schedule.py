"""Rotations that a Garden's maintenance begins and completes by itself: pure functions.

A step is due once its credential is old enough, and begins in the maintenance window. It is the
step that a user would request, under the same rules.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, deletion_timestamp_of, map_at
from pergola.api.operator_v1alpha1 import Garden, garden_from
from pergola.api.operator_v1alpha1.status import ObservabilityRotation, Rotation
from pergola.api.operator_v1alpha1.virtual_cluster import (
    MaintenanceAutoRotation,
    RotationSchedule,
    TwoStepRotationSchedule,
)
from pergola.garden.landscape.phases import COMPLETED, PREPARED
from pergola.operator.maintenance_window import Window
from pergola.operator.rotation.current import (
    ACCOUNT_KEY,
    AUTHORITIES,
    ENCRYPTION_KEY,
    OBSERVABILITY,
    WORKLOAD_KEY,
)
from pergola.operator.rotation.phases import rotation_of
from pergola.operator.rotation.requested import FIELDS, Action, Kind, Refused, request

_SUCCEEDED: Final = ("Reconcile", "Succeeded")


class Moment(NamedTuple):
    """A step of a rotation, and the time when it becomes due."""

    kind: Kind
    action: Action
    time: datetime


def due(garden: JsonObject, now: datetime) -> list[str]:
    """Return the operations that begin now according to the Garden's schedule.

    There are none outside the maintenance window, before the Garden is reconciled, during its
    deletion, or while a user requests an operation.
    """
    operation = map_at(garden, "status", "lastOperation")
    is_ready = (operation.get("type"), operation.get("state")) == _SUCCEEDED
    if not is_ready or deletion_timestamp_of(garden):
        return []
    typed = garden_from(garden)
    steps = [each for each in moments(typed) if each.time <= now]
    if not steps or window_of(typed).left(now) is None:
        return []
    return [found for each in steps if (found := _operation(garden, each))]


def next_time(garden: Garden, now: datetime) -> timedelta | None:
    """Return the time until a step becomes due in a window; None if no step will."""
    steps = [*moments(garden)]
    if not steps:
        return None
    window = window_of(garden)
    starts = [max(now, each.time) for each in steps if each.time > now or window.opens(now)]
    return min((start - now + window.opens(start) for start in starts), default=None)


def moments(garden: Garden) -> Iterator[Moment]:
    """Yield the next step of each rotation that the Garden schedules."""
    for kind, schedule in _schedules(garden):
        rotation = rotation_of(garden).get(FIELDS[kind])
        phase = rotation.phase if isinstance(rotation, Rotation) else ""
        if phase in ("", COMPLETED):
            yield Moment(kind, "start", _last(garden, rotation) + schedule.rotation_period)
        elif phase == PREPARED and isinstance(rotation, Rotation):
            prepared, delay = rotation.last_initiation_finished_time, _delay(schedule)
            if prepared and delay is not None:
                yield Moment(kind, "complete", datetime.fromisoformat(prepared) + delay)


def window_of(garden: Garden) -> Window:
    """Return the maintenance window of a Garden."""
    window = garden.spec.virtual_cluster.maintenance.time_window
    return Window.between(window.begin, window.end)


def _schedules(garden: Garden) -> Iterator[tuple[Kind, RotationSchedule]]:
    settings = garden.spec.virtual_cluster.maintenance.auto_rotation or MaintenanceAutoRotation()
    credentials = settings.credentials
    found: dict[str, RotationSchedule | None] = {
        AUTHORITIES: credentials.certificate_authorities,
        ACCOUNT_KEY: credentials.service_account_key,
        ENCRYPTION_KEY: credentials.etcd_encryption_key,
        OBSERVABILITY: credentials.observability,
        WORKLOAD_KEY: credentials.workload_identity_key,
    }
    for kind, name in FIELDS.items():
        schedule = found[name]
        if schedule is not None:
            yield kind, schedule


def _last(garden: Garden, rotation: Rotation | ObservabilityRotation | None) -> datetime:
    """Return when a credential was generated: by its last rotation, or with the Garden."""
    began = rotation.last_initiation_time if rotation else None
    return datetime.fromisoformat(began or str(garden.metadata["creationTimestamp"]))


def _delay(schedule: RotationSchedule) -> timedelta | None:
    return schedule.complete_after if isinstance(schedule, TwoStepRotationSchedule) else None


def _operation(garden: JsonObject, moment: Moment) -> str | None:
    """Return the operation of a step; None if a user could not request it now."""
    try:
        return request(garden, moment.kind, moment.action).operation
    except Refused:
        return None
