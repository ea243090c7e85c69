"""The phases of credential rotations (spec 20 §9, spec 21 §10.3), one row per transition."""

from datetime import UTC, datetime

import pytest

from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1 import Garden, garden_from
from pergola.kube.patches import apply_merge_patch
from pergola.operator.rotation.phases import begun, key_completes_now, succeeded
from pergola.testing.gardens import MINIMAL

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
AT = "2026-01-02T03:04:05Z"
BEFORE = "2025-01-01T00:00:00Z"
STARTED = {
    "phase": "Preparing",
    "lastInitiationTime": AT,
    "lastInitiationFinishedTime": None,
    "lastCompletionTriggeredTime": None,
}
COMPLETING = {"phase": "Completing", "lastCompletionTriggeredTime": AT}
PHASED = ("certificateAuthorities", "serviceAccountKey", "etcdEncryptionKey", "workloadIdentityKey")


def garden(version: str = "1.33.0", **rotation: JsonObject) -> Garden:
    status = {"credentials": {"rotation": rotation}}
    spec = {"virtualCluster": {"kubernetes": {"version": version}}}
    return garden_from(apply_merge_patch(MINIMAL, {"spec": spec, "status": status}))


def test_starting_all_credentials_starts_each_kind() -> None:
    patch = begun(garden(), ["rotate-credentials-start"], NOW)
    for part in PHASED:
        assert STARTED.items() <= patch[part].items()
    assert patch["observability"] == {"lastInitiationTime": AT}


@pytest.mark.parametrize(
    ("operation", "version", "automatic"),
    [
        ("rotate-credentials-start", "1.33.0", False),
        ("rotate-credentials-start", "1.34.0", True),
        ("rotate-etcd-encryption-key", "1.33.0", True),
        ("rotate-etcd-encryption-key-start", "1.33.0", False),
    ],
)
def test_who_starts_the_rotation_of_the_key_decides_whether_it_completes_by_itself(
    operation: str, version: str, *, automatic: bool
) -> None:
    patch = begun(garden(version), [operation], NOW)
    assert patch["etcdEncryptionKey"]["autoCompleteAfterPrepared"] is automatic


def test_completing_all_leaves_the_key_alone_where_it_completes_by_itself() -> None:
    prepared = {part: {"phase": "Prepared"} for part in PHASED}
    old = begun(garden("1.33.0", **prepared), ["rotate-credentials-complete"], NOW)
    assert old == dict.fromkeys(PHASED, COMPLETING)
    running = {**prepared, "etcdEncryptionKey": {"phase": "Completing"}}
    new = begun(garden("1.34.0", **running), ["rotate-credentials-complete"], NOW)
    assert "etcdEncryptionKey" not in new


def test_a_prepared_key_goes_on_without_a_request() -> None:
    waiting = garden(etcdEncryptionKey={"phase": "Prepared", "autoCompleteAfterPrepared": True})
    assert key_completes_now(waiting)
    assert begun(waiting, [], NOW) == {"etcdEncryptionKey": COMPLETING}
    assert not key_completes_now(garden(etcdEncryptionKey={"phase": "Prepared"}))


def test_another_encryption_provider_starts_the_rotation_of_the_key() -> None:
    used = {"encryptionAtRest": {"provider": {"type": "secretbox"}}}
    changed = garden_from(apply_merge_patch(MINIMAL, {"status": {"credentials": used}}))
    patch = begun(changed, [], NOW)
    assert patch["etcdEncryptionKey"]["autoCompleteAfterPrepared"] is True


@pytest.mark.parametrize("part", PHASED)
def test_success_ends_the_phase_that_runs(part: str) -> None:
    prepared = succeeded(garden("1.33.0", **{part: {"phase": "Preparing"}}), NOW)
    assert prepared == {part: {"phase": "Prepared", "lastInitiationFinishedTime": AT}}
    completed = succeeded(garden("1.33.0", **{part: {"phase": "Completing"}}), NOW)[part]
    assert (completed["phase"], completed["lastCompletionTime"]) == ("Completed", AT)
    assert completed["lastCompletionTriggeredTime"] is None
    assert succeeded(garden("1.33.0", **{part: {"phase": "Prepared"}}), NOW) == {}


def test_observability_completes_once_for_each_start() -> None:
    started = {"lastInitiationTime": "2026-01-01T00:00:00Z", "lastCompletionTime": BEFORE}
    patch = succeeded(garden(observability=started), NOW)
    assert patch == {"observability": {"lastCompletionTime": AT}}
    done = {**started, "lastCompletionTime": AT}
    assert succeeded(garden(observability=done), NOW) == {}


def test_without_a_request_nothing_changes() -> None:
    assert begun(garden(), ["reconcile"], NOW) == {}
