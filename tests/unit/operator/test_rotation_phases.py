"""The phases of credential rotations (spec 20 §9, spec 21 §10.3), one row per transition."""

from datetime import UTC, datetime

import pytest

from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1 import Garden, garden_from
from pergola.kube.patches import apply_merge_patch
from pergola.operator.rotation.phases import begun, key_completes_now, phases_since, succeeded
from tests.support.gardens import MINIMAL

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
def test_the_operation_decides_whether_a_key_rotation_completes_automatically(
    operation: str, version: str, *, automatic: bool
) -> None:
    patch = begun(garden(version), [operation], NOW)
    assert patch["etcdEncryptionKey"]["autoCompleteAfterPrepared"] is automatic


def test_completing_all_skips_a_key_that_completes_automatically() -> None:
    prepared = {part: {"phase": "Prepared"} for part in PHASED}
    old = begun(garden("1.33.0", **prepared), ["rotate-credentials-complete"], NOW)
    assert old == dict.fromkeys(PHASED, COMPLETING)
    running = {**prepared, "etcdEncryptionKey": {"phase": "Completing"}}
    new = begun(garden("1.34.0", **running), ["rotate-credentials-complete"], NOW)
    assert "etcdEncryptionKey" not in new


def test_a_prepared_key_continues_without_a_request() -> None:
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
def test_success_ends_the_current_phase(part: str) -> None:
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


@pytest.mark.parametrize(
    ("operation", "part"),
    [
        ("rotate-ca-start", "certificateAuthorities"),
        ("rotate-serviceaccount-key-start", "serviceAccountKey"),
        ("rotate-etcd-encryption-key-start", "etcdEncryptionKey"),
        ("rotate-etcd-encryption-key", "etcdEncryptionKey"),
        ("rotate-workload-identity-key-start", "workloadIdentityKey"),
    ],
)
@pytest.mark.parametrize("phase", ["", "Completed"])
def test_a_start_begins_one_rotation_and_clears_the_times_of_the_last(
    operation: str, part: str, phase: str
) -> None:
    last = {"phase": phase, "lastInitiationTime": BEFORE, "lastCompletionTime": BEFORE}
    patch = begun(garden("1.33.0", **{part: last}), [operation], NOW)
    assert [*patch] == [part]
    assert STARTED.items() <= patch[part].items()
    assert "lastCompletionTime" not in patch[part]


@pytest.mark.parametrize(
    ("operation", "part"),
    [
        ("rotate-ca-complete", "certificateAuthorities"),
        ("rotate-serviceaccount-key-complete", "serviceAccountKey"),
        ("rotate-etcd-encryption-key-complete", "etcdEncryptionKey"),
        ("rotate-workload-identity-key-complete", "workloadIdentityKey"),
    ],
)
def test_a_completion_affects_one_rotation(operation: str, part: str) -> None:
    prepared = {name: {"phase": "Prepared"} for name in PHASED}
    assert begun(garden("1.33.0", **prepared), [operation], NOW) == {part: COMPLETING}


def test_an_operation_on_all_credentials_includes_those_on_one() -> None:
    together = ["rotate-credentials-start", "rotate-ca-start", "rotate-observability-credentials"]
    alone = begun(garden(), ["rotate-credentials-start"], NOW)
    assert begun(garden(), together, NOW) == alone
    prepared = {name: {"phase": "Prepared"} for name in PHASED}
    completing = ["rotate-ca-complete", "rotate-credentials-complete"]
    assert begun(garden("1.33.0", **prepared), completing, NOW) == dict.fromkeys(PHASED, COMPLETING)


@pytest.mark.parametrize("phase", ["Preparing", "Completing"])
def test_a_failed_run_is_resumed_with_the_same_phase_and_times(phase: str) -> None:
    running = {name: {"phase": phase, "lastInitiationTime": BEFORE} for name in PHASED}
    assert begun(garden("1.33.0", **running), [], NOW) == {}


@pytest.mark.parametrize(
    ("version", "automatic", "goes_on"),
    [("1.33.9", None, False), ("1.33.9", True, True), ("1.34.0", None, True)],
)
def test_a_prepared_key_completes_automatically_by_choice_or_version(
    version: str, *, automatic: bool | None, goes_on: bool
) -> None:
    key = {"phase": "Prepared", "autoCompleteAfterPrepared": automatic}
    waiting = garden(version, etcdEncryptionKey=key)
    assert key_completes_now(waiting) is goes_on
    assert begun(waiting, [], NOW) == ({"etcdEncryptionKey": COMPLETING} if goes_on else {})


def test_the_choice_ends_with_the_rotation() -> None:
    key = {"phase": "Completing", "autoCompleteAfterPrepared": True}
    patch = succeeded(garden(etcdEncryptionKey=key), NOW)["etcdEncryptionKey"]
    assert (patch["phase"], patch["autoCompleteAfterPrepared"]) == ("Completed", None)


@pytest.mark.parametrize(
    ("used", "phase", "starts"),
    [
        ("secretbox", "", True),
        ("secretbox", "Completed", True),
        ("secretbox", "Preparing", False),
        ("secretbox", "Completing", False),
        ("aescbc", "", False),
        ("", "", False),
    ],
)
def test_another_provider_starts_a_rotation_unless_one_is_in_progress(
    used: str, phase: str, *, starts: bool
) -> None:
    credentials: JsonObject = {
        "encryptionAtRest": {"provider": {"type": used}},
        "rotation": {"etcdEncryptionKey": {"phase": phase}},
    }
    version = {"virtualCluster": {"kubernetes": {"version": "1.33.0"}}}
    patch = {"spec": version, "status": {"credentials": credentials}}
    changed = garden_from(apply_merge_patch(MINIMAL, patch))
    assert ("etcdEncryptionKey" in begun(changed, [], NOW)) is starts


@pytest.mark.parametrize("phase", ["Preparing", "Prepared", "Completing"])
def test_a_started_rotation_is_not_restarted(phase: str) -> None:
    running = {name: {"phase": phase, "lastInitiationTime": BEFORE} for name in PHASED}
    patch = begun(garden("1.33.0", **running), ["rotate-credentials-start"], NOW)
    assert [*patch] == ["observability"]
    for operation in ("rotate-ca-start", "rotate-etcd-encryption-key"):
        assert begun(garden("1.33.0", **running), [operation], NOW) == {}


@pytest.mark.parametrize("phase", ["", "Preparing", "Completing", "Completed"])
def test_only_prepared_rotations_are_completed(phase: str) -> None:
    others = {name: {"phase": phase} for name in PHASED}
    assert begun(garden("1.33.0", **others), ["rotate-credentials-complete"], NOW) == {}


def test_an_operator_killed_before_it_removes_the_request_does_not_start_twice() -> None:
    first = begun(garden(), ["rotate-ca-start"], NOW)
    later = datetime(2026, 1, 2, 4, tzinfo=UTC)
    assert begun(garden("1.33.0", **first), ["rotate-ca-start"], later) == {}
    prepared = {"certificateAuthorities": {"phase": "Prepared"}}
    second = begun(garden("1.33.0", **prepared), ["rotate-ca-complete"], NOW)
    assert begun(garden("1.33.0", **second), ["rotate-ca-complete"], later) == {}


@pytest.mark.parametrize(
    ("phase", "time"),
    [
        ("Preparing", "lastInitiationTime"),
        ("Prepared", "lastInitiationFinishedTime"),
        ("Completing", "lastCompletionTriggeredTime"),
        ("Completed", "lastCompletionTime"),
    ],
)
def test_the_age_of_a_phase_starts_with_the_step_that_led_to_it(phase: str, time: str) -> None:
    times = dict.fromkeys(
        ("lastInitiationTime", "lastInitiationFinishedTime", "lastCompletionTriggeredTime"), BEFORE
    )
    rotation = {**times, "lastCompletionTime": BEFORE, time: AT, "phase": phase}
    assert phases_since(garden(serviceAccountKey=rotation)) == {"serviceAccountKey": (phase, NOW)}


def test_a_rotation_that_never_began_has_no_phase() -> None:
    assert phases_since(garden()) == {}


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({"lastInitiationTime": AT}, ("Preparing", NOW)),
        ({"lastInitiationTime": AT, "lastCompletionTime": BEFORE}, ("Preparing", NOW)),
        ({"lastInitiationTime": BEFORE, "lastCompletionTime": AT}, ("Completed", NOW)),
    ],
)
def test_passwords_are_prepared_until_all_seeds_have_them(
    times: JsonObject, expected: tuple[str, datetime]
) -> None:
    assert phases_since(garden(observability=times)) == {"observability": expected}
