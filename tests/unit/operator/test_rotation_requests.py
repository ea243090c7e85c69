"""Rotations that users can request, and the age of credentials."""

from datetime import UTC, datetime, timedelta

import pytest

from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1 import garden_from
from pergola.kube.patches import apply_merge_patch
from pergola.operator.rotation.ages import ages
from pergola.operator.rotation.requested import Action, Kind, Refused, is_under_way, request
from tests.support.gardens import MINIMAL

NOW = datetime(2026, 1, 31, tzinfo=UTC)


def garden(version: str = "1.34.2", annotation: str = "", **phases: str) -> JsonObject:
    rotation = {name: {"phase": phase} for name, phase in phases.items()}
    at_rest = {"resources": [], "provider": {"type": "aescbc"}}
    annotations = {"gardener.cloud/operation": annotation} if annotation else {}
    return apply_merge_patch(
        MINIMAL,
        {
            "metadata": {"annotations": annotations},
            "spec": {"virtualCluster": {"kubernetes": {"version": version}}},
            "status": {"credentials": {"rotation": rotation, "encryptionAtRest": at_rest}},
        },
    )


@pytest.mark.parametrize(
    ("kind", "action", "operation"),
    [
        ("all", "start", "rotate-credentials-start"),
        ("ca", "start", "rotate-ca-start"),
        ("service-account-key", "start", "rotate-serviceaccount-key-start"),
        ("etcd-encryption-key", "start", "rotate-etcd-encryption-key"),
        ("observability", "start", "rotate-observability-credentials"),
        ("workload-identity-key", "start", "rotate-workload-identity-key-start"),
    ],
)
def test_each_kind_starts_with_its_operation(kind: Kind, action: Action, operation: str) -> None:
    requested = request(garden(), kind, action)
    assert requested.operation == operation
    assert len(requested.effects) == (5 if kind == "all" else 1)


def test_completing_all_omits_a_key_that_completes_automatically() -> None:
    prepared = dict.fromkeys(
        ("certificateAuthorities", "serviceAccountKey", "workloadIdentityKey"), "Prepared"
    )
    requested = request(garden(etcdEncryptionKey="Completed", **prepared), "all", "complete")
    assert requested.operation == "rotate-credentials-complete"
    assert not any("the old key is removed" in effect for effect in requested.effects)
    old = request(garden("1.33.1", etcdEncryptionKey="Prepared", **prepared), "all", "complete")
    assert "the old key is removed" in old.effects


@pytest.mark.parametrize(
    ("live", "kind", "action", "sentence"),
    [
        (
            garden(certificateAuthorities="Prepared"),
            "ca",
            "start",
            (
                "cannot start CA rotation if .status.credentials.rotation."
                "certificateAuthorities.phase is not 'Completed'"
            ),
        ),
        (
            garden(),
            "ca",
            "complete",
            (
                "cannot complete CA rotation if .status.credentials.rotation."
                "certificateAuthorities.phase is not 'Prepared'"
            ),
        ),
        (garden(), "observability", "complete", "in one step: use --start"),
        (
            garden(etcdEncryptionKey="Prepared"),
            "etcd-encryption-key",
            "complete",
            "is no longer supported",
        ),
        (garden(annotation="rotate-ca-start"), "ca", "start", 'not begun "rotate-ca-start" yet'),
    ],
)
def test_requests_that_the_webhook_would_refuse_are_refused_with_its_message(
    live: JsonObject, kind: Kind, action: Action, sentence: str
) -> None:
    with pytest.raises(Refused) as raised:
        request(live, kind, action)
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("phase", "goes_on"),
    [
        ("", False),
        ("Preparing", True),
        ("Prepared", False),
        ("Completing", True),
        ("Completed", False),
    ],
)
def test_a_rotation_continues_automatically_in_two_phases(phase: str, *, goes_on: bool) -> None:
    assert is_under_way(garden_from(garden(certificateAuthorities=phase))) is goes_on


def test_a_prepared_etcd_key_continues_if_it_completes_automatically() -> None:
    assert is_under_way(garden_from(garden(etcdEncryptionKey="Prepared")))
    assert not is_under_way(garden_from(garden("1.33.1", etcdEncryptionKey="Prepared")))


def test_the_newest_secret_of_a_credential_counts_for_its_age() -> None:
    secrets = [secret("ca", 30), secret("ca", 3), secret("service-account-key", 400)]
    secrets += [secret("kube-apiserver", 1), {"name": "ca-client"}]
    assert ages(secrets, NOW) == [
        ("ca", timedelta(days=3)),
        ("service-account-key", timedelta(days=400)),
    ]


def secret(name: str, days: int) -> dict[str, str]:
    issued = str(int((NOW - timedelta(days=days)).timestamp()))
    return {"name": name, "issued-at-time": issued}
