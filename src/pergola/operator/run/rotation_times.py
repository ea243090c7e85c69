"""The times when a user started the rotation of each credential (spec 20 §10.4)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from pergola.api.operator_v1alpha1.status import CredentialsRotation
from pergola.garden.components.authorities import ON_DEMAND

_STATIC_TOKEN: Final = "kube-apiserver-static-token"  # noqa: S105 - the name of a credential
_SERVICE_ACCOUNT: Final = ("service-account-key",)
_ENCRYPTION: Final = (
    "kube-apiserver-etcd-encryption-key",
    "gardener-apiserver-etcd-encryption-key",
)
_OBSERVABILITY: Final = ("observability-ingress", "global-observability-ingress")
_WORKLOAD_IDENTITY: Final = ("gardener-apiserver-workload-identity-signing-key",)


def rotation_times(rotation: CredentialsRotation) -> Mapping[str, datetime]:
    """Return the start of the last rotation of each credential that was ever rotated."""
    parts = (
        (rotation.certificate_authorities, (*ON_DEMAND, _STATIC_TOKEN)),
        (rotation.service_account_key, _SERVICE_ACCOUNT),
        (rotation.etcd_encryption_key, _ENCRYPTION),
        (rotation.observability, _OBSERVABILITY),
        (rotation.workload_identity_key, _WORKLOAD_IDENTITY),
    )
    return {
        name: datetime.fromisoformat(part.last_initiation_time)
        for part, names in parts
        if part is not None and part.last_initiation_time is not None
        for name in names
    }
