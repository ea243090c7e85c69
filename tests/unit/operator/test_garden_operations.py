"""Requested operations of a Garden, in every phase: spec 20 §6, spec 21 §10.2."""

import pytest

from pergola.api.operator_v1alpha1 import garden_from
from pergola.garden.rules.validation import check_garden
from tests.support.gardens import FACTS, SERVER, VIRTUAL, findings, operations, with_values

OPERATION = "metadata.annotations[gardener.cloud/operation]"
ROTATED = ("certificateAuthorities", "serviceAccountKey", "etcdEncryptionKey")
ALL = (*ROTATED, "workloadIdentityKey")
OPERATIONS: list[tuple[str, dict[str, str], list[str]]] = [
    ("reconcile", {}, []),
    ("reconcile;", {}, []),
    ("rotate-ca-start;rotate-observability-credentials", {}, []),
    ("rotate-ca-start", {"certificateAuthorities": "Completed"}, []),
    (
        "rotate-ca-start",
        {"certificateAuthorities": "Prepared"},
        [
            (
                "cannot start CA rotation if "
                ".status.credentials.rotation.certificateAuthorities.phase is not 'Completed'"
            )
        ],
    ),
    ("rotate-ca-complete", {"certificateAuthorities": "Prepared"}, []),
    (
        "rotate-ca-complete",
        {"certificateAuthorities": "Preparing"},
        [
            (
                "cannot complete CA rotation if "
                ".status.credentials.rotation.certificateAuthorities.phase is not 'Prepared'"
            )
        ],
    ),
    (
        "rotate-serviceaccount-key-start",
        {"serviceAccountKey": "Preparing"},
        [
            (
                "cannot start service account key rotation if "
                ".status.credentials.rotation.serviceAccountKey.phase is not 'Completed'"
            )
        ],
    ),
    (
        "rotate-serviceaccount-key-complete",
        {},
        [
            (
                "cannot complete service account key rotation if "
                ".status.credentials.rotation.serviceAccountKey.phase is not 'Prepared'"
            )
        ],
    ),
    (
        "rotate-workload-identity-key-start",
        {"workloadIdentityKey": "Completing"},
        [
            (
                "cannot start workload identity key rotation if "
                ".status.credentials.rotation.workloadIdentityKey.phase is not 'Completed'"
            )
        ],
    ),
    (
        "rotate-workload-identity-key-complete",
        {"workloadIdentityKey": "Completed"},
        [
            (
                "cannot complete workload identity key rotation if "
                ".status.credentials.rotation.workloadIdentityKey.phase is not 'Prepared'"
            )
        ],
    ),
    (
        "rotate-etcd-encryption-key",
        {"etcdEncryptionKey": "Prepared"},
        [
            (
                "cannot start ETCD encryption key rotation if "
                ".status.credentials.rotation.etcdEncryptionKey.phase is not 'Completed'"
            )
        ],
    ),
    (
        "rotate-credentials-start",
        {"etcdEncryptionKey": "Prepared"},
        [
            (
                "cannot start rotation of all credentials if "
                ".status.credentials.rotation.etcdEncryptionKey.phase is not 'Completed'"
            )
        ],
    ),
    ("rotate-credentials-start", dict.fromkeys(ALL, "Completed"), []),
    (
        "rotate-credentials-complete",
        dict.fromkeys(ALL, "Prepared") | {"etcdEncryptionKey": "Completed"},
        [],
    ),
    (
        "rotate-credentials-complete",
        {"certificateAuthorities": "Prepared", "serviceAccountKey": "Prepared"},
        [
            (
                "cannot complete rotation of all credentials if "
                ".status.credentials.rotation.workloadIdentityKey.phase is not 'Prepared'"
            )
        ],
    ),
    (
        "rotate-etcd-encryption-key-start",
        {},
        [
            (
                "for Kubernetes versions >= 1.34, operation 'rotate-etcd-encryption-key-start' is "
                "no longer supported, please use 'rotate-etcd-encryption-key' instead, which "
                "performs a complete etcd encryption key rotation"
            )
        ],
    ),
]


@pytest.mark.parametrize(("annotation", "phases", "messages"), OPERATIONS)
def test_an_operation_is_refused_in_the_wrong_phase(
    annotation: str, phases: dict[str, str], messages: list[str]
) -> None:
    causes = list(check_garden(garden_from(operations(annotation, **phases)), FACTS))

    assert [cause.field for cause in causes] == [OPERATION] * len(messages)
    assert [cause.message.removeprefix("Forbidden: ") for cause in causes] == messages


def test_the_error_about_an_unknown_operation_lists_the_known_ones() -> None:
    [cause] = check_garden(garden_from(operations("rotate-ssh-keypair")), FACTS)

    assert (cause.reason, cause.field) == ("FieldValueNotSupported", OPERATION)
    assert '"reconcile", "rotate-ca-complete", "rotate-ca-start"' in cause.message


def test_two_kinds_of_etcd_key_rotation_exclude_each_other() -> None:
    both = operations("rotate-etcd-encryption-key;rotate-etcd-encryption-key-start")
    older = with_values(both, {f"{VIRTUAL}.kubernetes.version": "1.33.4"})

    [cause] = check_garden(garden_from(older), FACTS)

    assert cause.field == OPERATION
    assert "is not permitted to be run together with" in cause.message


def test_before_1_34_all_credentials_are_complete_only_with_the_etcd_key() -> None:
    rotated = operations("rotate-credentials-complete", **dict.fromkeys(ALL, "Prepared"))
    unfinished = with_values(
        rotated,
        {
            f"{VIRTUAL}.kubernetes.version": "1.33.4",
            "status.credentials.rotation.etcdEncryptionKey.phase": "Preparing",
        },
    )

    [cause] = check_garden(garden_from(unfinished), FACTS)

    assert "etcdEncryptionKey.phase is not 'Prepared'" in cause.message


@pytest.mark.parametrize("operation", ["rotate-credentials-start", "rotate-etcd-encryption-key"])
def test_no_key_rotates_while_other_resources_are_being_encrypted(operation: str) -> None:
    garden = with_values(operations(operation), {f"{SERVER}.encryptionConfig.resources": ["pods"]})

    [cause] = check_garden(garden_from(garden), FACTS)

    assert cause.message.endswith(
        "because a previous encryption configuration change is currently being rolled out"
    )


def test_a_rotation_starts_once_all_resources_are_encrypted() -> None:
    garden = with_values(
        operations("rotate-credentials-start"),
        {
            f"{SERVER}.encryptionConfig.resources": ["pods"],
            "status.credentials.encryptionAtRest": {"resources": ["pods"]},
        },
    )

    assert findings(garden) == []


def test_a_status_of_an_older_operator_is_understood() -> None:
    garden = with_values(
        operations("rotate-credentials-start"),
        {
            f"{SERVER}.encryptionConfig.resources": ["pods"],
            "status.encryptedResources": ["pods"],
        },
    )

    assert findings(garden) == []


@pytest.mark.parametrize(
    "operation",
    [
        "rotate-credentials-start",
        "rotate-ca-start",
        "rotate-serviceaccount-key-start",
        "rotate-etcd-encryption-key",
        "rotate-observability-credentials",
        "rotate-workload-identity-key-start",
    ],
)
def test_nothing_rotates_while_the_garden_is_deleted(operation: str) -> None:
    garden = with_values(
        operations(operation), {"metadata.deletionTimestamp": "2026-01-01T00:00:00Z"}
    )

    [cause] = check_garden(garden_from(garden), FACTS)

    assert cause.message.endswith("if garden has deletion timestamp")


def test_a_deleted_garden_can_be_reconciled() -> None:
    garden = with_values(
        operations("reconcile"), {"metadata.deletionTimestamp": "2026-01-01T00:00:00Z"}
    )

    assert findings(garden) == []
