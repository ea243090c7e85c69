"""`Etcd` objects: the desired form, and the wait for them (spec 20 §15.1)."""

from datetime import UTC, datetime
from typing import Any

import pytest

from pergola.api.objects import JsonObject, annotations_of
from pergola.garden.landscape.etcd_objects import kept, problem, requested
from pergola.kube.patches import apply_merge_patch

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
READY: JsonObject = {
    "metadata": {"generation": 2},
    "status": {
        "observedGeneration": 2,
        "ready": True,
        "conditions": [{"type": "AllMembersUpdated", "status": "True"}],
    },
}


def etcd(role: str = "main", **spec: Any) -> JsonObject:
    return {"metadata": {"labels": {"role": role}}, "spec": spec}


def test_capacity_and_schedules_of_an_existing_etcd_are_kept() -> None:
    desired = etcd(
        storageCapacity="50Gi",
        etcd={"defragmentationSchedule": "0 1 * * *", "quota": "8Gi"},
        backup={"fullSnapshotSchedule": "0 2 * * *"},
    )
    live = etcd(
        storageCapacity="25Gi",
        etcd={"defragmentationSchedule": "5 1 * * *", "quota": "4Gi"},
        backup={"fullSnapshotSchedule": "5 2 * * *"},
    )
    assert kept(desired, live)["spec"] == {
        "storageCapacity": "25Gi",
        "etcd": {"defragmentationSchedule": "5 1 * * *", "quota": "8Gi"},
        "backup": {"fullSnapshotSchedule": "5 2 * * *"},
    }


@pytest.mark.parametrize(("role", "schedule"), [("main", "0 1 * * *"), ("events", "0 1 */3 * *")])
def test_only_a_main_etcd_that_was_defragmented_too_rarely_gets_another_schedule(
    role: str, schedule: str
) -> None:
    desired = etcd(role, etcd={"defragmentationSchedule": "0 1 * * *"})
    live = etcd(role, etcd={"defragmentationSchedule": "0 1 */3 * *"})
    assert kept(desired, live)["spec"]["etcd"]["defragmentationSchedule"] == schedule


def test_a_backup_that_the_garden_no_longer_has_is_not_kept() -> None:
    live = etcd(backup={"fullSnapshotSchedule": "5 2 * * *"})
    assert kept(etcd(backup={"port": 8080}), live)["spec"]["backup"] == {"port": 8080}


def test_a_request_is_kept_until_druid_accepts_it() -> None:
    asked = requested(etcd(), NOW)
    assert annotations_of(asked) == {
        "gardener.cloud/operation": "reconcile",
        "gardener.cloud/timestamp": "2026-01-02T03:04:05.000000000Z",
    }
    assert annotations_of(kept(etcd(), asked)) == annotations_of(asked)


def test_a_ready_etcd_has_no_problem() -> None:
    assert problem(READY) is None


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"metadata": {"generation": 3}},
            "etcd-druid has not carried out the request to reconcile it",
        ),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "it is being deleted"),
        (
            {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}},
            "etcd-druid has not carried out the request to reconcile it",
        ),
        (
            {"metadata": {"generation": 3}, "status": {"lastErrors": [{"description": "no disk"}]}},
            "no disk",
        ),
        ({"status": {"conditions": []}}, "condition AllMembersUpdated is missing"),
        ({"status": {"ready": False}}, "it is not ready"),
    ],
)
def test_each_problem_of_an_etcd_is_reported(change: JsonObject, text: str) -> None:
    assert problem(apply_merge_patch(READY, change)) == text


def test_an_error_from_before_the_request_is_ignored() -> None:
    assert problem(apply_merge_patch(READY, {"status": {"lastErrors": [{"code": "X"}]}})) is None


def test_an_absent_etcd_is_not_ready() -> None:
    assert problem(None) == "it does not exist"
