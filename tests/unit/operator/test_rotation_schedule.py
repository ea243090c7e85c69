"""Rotations that begin and complete in the maintenance window, by a virtual clock."""

from datetime import UTC, datetime, timedelta

import pytest

from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1 import garden_from
from pergola.kube.patches import apply_merge_patch
from pergola.operator.rotation.phases import begun, succeeded
from pergola.operator.rotation.schedule import due, next_time
from tests.support.gardens import MINIMAL

CREATED = datetime(2026, 1, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
WINDOW = {"begin": "220000+0100", "end": "230000+0100"}  # 21:00 to 22:00 in UTC
MONTHLY: JsonObject = {"rotationPeriod": "720h"}
SUCCEEDED: JsonObject = {
    "type": "Reconcile",
    "state": "Succeeded",
    "progress": 100,
    "description": "done",
    "lastUpdateTime": "2026-01-01T12:00:00Z",
}
PREPARING: JsonObject = {"certificateAuthorities": {"phase": "Preparing"}}
STARTED = "rotate-ca-start"
COMPLETED = "rotate-ca-complete"


def at(day: int, hour: int, minute: int = 0) -> datetime:
    """Return a time on a day after the Garden was created."""
    return CREATED.replace(hour=hour, minute=minute) + day * DAY


def garden(version: str = "1.34.0", **schedules: JsonObject) -> JsonObject:
    maintenance = {"timeWindow": WINDOW, "autoRotation": {"credentials": schedules}}
    return apply_merge_patch(
        MINIMAL,
        {
            "metadata": {"creationTimestamp": "2026-01-01T12:00:00Z"},
            "spec": {
                "virtualCluster": {
                    "maintenance": maintenance,
                    "kubernetes": {"version": version},
                }
            },
            "status": {"lastOperation": SUCCEEDED},
        },
    )


def rotated(obj: JsonObject, patch: JsonObject) -> JsonObject:
    return apply_merge_patch(obj, {"status": {"credentials": {"rotation": patch}}})


def run(obj: JsonObject, now: datetime) -> JsonObject:
    """Return a Garden after a reconciliation that succeeds."""
    obj = rotated(obj, begun(garden_from(obj), due(obj, now), now))
    return rotated(obj, succeeded(garden_from(obj), now))


@pytest.mark.parametrize(
    ("now", "operations"),
    [
        (at(29, 21, 30), []),
        (at(30, 20, 59), []),
        (at(30, 21), [STARTED]),
        (at(30, 21, 59), [STARTED]),
        (at(30, 22), []),
        (at(90, 12), []),
        (at(90, 21, 30), [STARTED]),
    ],
)
def test_a_rotation_begins_when_its_credential_is_old_and_the_window_is_open(
    now: datetime, operations: list[str]
) -> None:
    assert due(garden(certificateAuthorities=MONTHLY), now) == operations


@pytest.mark.parametrize(
    ("now", "wait"),
    [
        (at(0, 12), timedelta(days=30, hours=9)),
        (at(30, 12), timedelta(hours=9)),
        (at(30, 22), timedelta(hours=23)),
        (at(30, 21, 30), None),
    ],
)
def test_the_next_reconciliation_is_when_the_window_opens_for_a_step(
    now: datetime, wait: timedelta | None
) -> None:
    found = garden_from(garden(certificateAuthorities=MONTHLY))
    assert next_time(found, now) == wait


def test_a_garden_without_a_schedule_rotates_nothing() -> None:
    assert due(garden(), at(4000, 21, 30)) == []
    assert next_time(garden_from(garden()), at(4000, 12)) is None


def test_a_rotation_begins_once_and_again_after_its_period() -> None:
    obj = garden(observability=MONTHLY)
    assert due(obj, at(30, 21, 5)) == ["rotate-observability-credentials"]
    obj = run(obj, at(30, 21, 5))
    assert due(obj, at(30, 21, 6)) == []
    assert due(obj, at(60, 21, 4)) == []
    assert due(obj, at(60, 21, 5)) == ["rotate-observability-credentials"]


def test_rotations_in_two_steps_are_completed_only_if_the_schedule_has_a_delay() -> None:
    manual = run(garden(certificateAuthorities=MONTHLY), at(30, 21))
    assert due(manual, at(300, 21, 30)) == []

    weekly: JsonObject = {**MONTHLY, "completeAfter": "168h"}
    automatic = run(garden(certificateAuthorities=weekly), at(30, 21))
    assert next_time(garden_from(automatic), at(30, 21, 1)) == 7 * DAY - timedelta(minutes=1)
    assert due(automatic, at(36, 21, 30)) == []
    assert due(automatic, at(37, 21)) == [COMPLETED]
    completed = run(automatic, at(37, 21))
    assert due(completed, at(37, 21, 30)) == []
    assert due(completed, at(60, 21)) == [STARTED]


def test_credentials_have_their_own_schedules() -> None:
    obj = garden(
        serviceAccountKey={"rotationPeriod": "24h"},
        etcdEncryptionKey={"rotationPeriod": "48h"},
        workloadIdentityKey=MONTHLY,
    )
    assert due(obj, at(1, 21)) == ["rotate-serviceaccount-key-start"]
    assert due(obj, at(2, 21)) == ["rotate-serviceaccount-key-start", "rotate-etcd-encryption-key"]


@pytest.mark.parametrize(
    "patch",
    [
        {"status": {"lastOperation": {"state": "Error"}}},
        {"status": {"lastOperation": {"state": "Processing"}}},
        {"status": {"lastOperation": None}},
        {"metadata": {"deletionTimestamp": "2026-02-01T00:00:00Z"}},
        {"metadata": {"annotations": {"gardener.cloud/operation": "rotate-credentials-start"}}},
        {
            "status": {
                "credentials": {"rotation": {"certificateAuthorities": {"phase": "Preparing"}}}
            }
        },
    ],
)
def test_no_rotation_begins_before_a_garden_is_ready_or_during_other_operations(
    patch: JsonObject,
) -> None:
    obj = garden(certificateAuthorities=MONTHLY)
    assert due(apply_merge_patch(obj, patch), at(40, 21, 30)) == []
