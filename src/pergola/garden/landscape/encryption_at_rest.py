"""The resources that the two API servers of a Garden encrypt in etcd (spec 20 §6, §17.3)."""

from collections.abc import Iterable
from typing import Final

from pergola.api.operator_v1alpha1.status import EncryptionAtRest, GardenStatus

ALWAYS_BY_KUBERNETES: Final = ("secrets",)
"""Resources that kube-apiserver always encrypts."""
ALWAYS_BY_GARDENER: Final = (
    "controllerdeployments.core.gardener.cloud",
    "controllerregistrations.core.gardener.cloud",
    "internalsecrets.core.gardener.cloud",
    "shootstates.core.gardener.cloud",
)
"""Resources that gardener-apiserver always encrypts."""

POPULATED: Final = "credentials.gardener.cloud/new-encryption-key-populated"
"""The annotation of an API server's Deployment, set once all its replicas know the new key."""

ENCRYPTION_VOLUME: Final = "etcd-encryption-secret"
"""The volume of an API server with its encryption configuration."""

_GARDENER_GROUPS: Final = tuple(
    f"{name}.gardener.cloud"
    for name in ("authentication", "core", "operations", "security", "settings", "seedmanagement")
)


def encrypted_now(status: GardenStatus | None) -> EncryptionAtRest:
    """Return what is currently encrypted, even if an older operator recorded only the resources."""
    if status is None:
        return EncryptionAtRest()
    if status.credentials is not None and status.credentials.encryption_at_rest is not None:
        return status.credentials.encryption_at_rest
    return EncryptionAtRest(resources=status.encrypted_resources)


def is_served_by_gardener(resource: str) -> bool:
    """Return whether a resource belongs to a group of gardener-apiserver."""
    return resource.partition(".")[2] in _GARDENER_GROUPS


def resource_keys(resources: Iterable[str]) -> set[str]:
    """Return the resources, with a uniform spelling for those of the core group."""
    return {resource.rstrip(".") for resource in resources}
