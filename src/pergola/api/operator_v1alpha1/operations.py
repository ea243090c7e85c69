"""Operations that users request with the annotation `gardener.cloud/operation` of a Garden.

The annotation can hold several, separated by `;` (spec 20 §4, spec 21 §10.2).
"""

from typing import Final

from pergola.api import marks

RECONCILE: Final = marks.OPERATION_RECONCILE
ROTATE_CREDENTIALS_START: Final = "rotate-credentials-start"
ROTATE_CREDENTIALS_COMPLETE: Final = "rotate-credentials-complete"
ROTATE_CA_START: Final = "rotate-ca-start"
ROTATE_CA_COMPLETE: Final = "rotate-ca-complete"
ROTATE_SERVICE_ACCOUNT_KEY_START: Final = "rotate-serviceaccount-key-start"
ROTATE_SERVICE_ACCOUNT_KEY_COMPLETE: Final = "rotate-serviceaccount-key-complete"
ROTATE_ETCD_ENCRYPTION_KEY: Final = "rotate-etcd-encryption-key"
ROTATE_ETCD_ENCRYPTION_KEY_START: Final = "rotate-etcd-encryption-key-start"
ROTATE_ETCD_ENCRYPTION_KEY_COMPLETE: Final = "rotate-etcd-encryption-key-complete"
ROTATE_OBSERVABILITY_CREDENTIALS: Final = "rotate-observability-credentials"
ROTATE_WORKLOAD_IDENTITY_KEY_START: Final = "rotate-workload-identity-key-start"
ROTATE_WORKLOAD_IDENTITY_KEY_COMPLETE: Final = "rotate-workload-identity-key-complete"

OPERATIONS: Final = frozenset(
    {
        RECONCILE,
        ROTATE_CREDENTIALS_START,
        ROTATE_CREDENTIALS_COMPLETE,
        ROTATE_CA_START,
        ROTATE_CA_COMPLETE,
        ROTATE_SERVICE_ACCOUNT_KEY_START,
        ROTATE_SERVICE_ACCOUNT_KEY_COMPLETE,
        ROTATE_ETCD_ENCRYPTION_KEY,
        ROTATE_ETCD_ENCRYPTION_KEY_START,
        ROTATE_ETCD_ENCRYPTION_KEY_COMPLETE,
        ROTATE_OBSERVABILITY_CREDENTIALS,
        ROTATE_WORKLOAD_IDENTITY_KEY_START,
        ROTATE_WORKLOAD_IDENTITY_KEY_COMPLETE,
    }
)


def operations_in(annotation: str) -> list[str]:
    """Return the operations in an annotation, in order, without duplicates and empty parts."""
    return list(dict.fromkeys(part.strip() for part in annotation.split(";") if part.strip()))


def annotation_of(operations: list[str]) -> str:
    """Return the value of the annotation for these operations."""
    return ";".join(operations)
