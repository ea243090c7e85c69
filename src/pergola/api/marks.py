"""Annotations, labels and finalizers, which manifests and controllers share.

The values are part of the API (spec 10 §1), and unbroken here so that a search finds them.
"""

from typing import Final

GROUP: Final = "resources.gardener.cloud"

# On objects inside a ManagedResource, spec 10 §1.1.
IGNORE: Final = "resources.gardener.cloud/ignore"
MODE: Final = "resources.gardener.cloud/mode"
MODE_IGNORE: Final = "Ignore"
SKIP_HEALTH_CHECK: Final = "resources.gardener.cloud/skip-health-check"
PRESERVE_REPLICAS: Final = "resources.gardener.cloud/preserve-replicas"
PRESERVE_RESOURCES: Final = "resources.gardener.cloud/preserve-resources"
FINALIZE_DELETION_AFTER: Final = "resources.gardener.cloud/finalize-deletion-after"
KEEP_OBJECT: Final = "resources.gardener.cloud/keep-object"
DELETE_ON_INVALID_UPDATE: Final = "resources.gardener.cloud/delete-on-invalid-update"
DELETION_PROPAGATION_ON_INVALID_UPDATE: Final = (
    "resources.gardener.cloud/deletion-propagation-on-invalid-update"
)
ORIGIN: Final = "resources.gardener.cloud/origin"
DESCRIPTION: Final = "resources.gardener.cloud/description"
DESCRIPTION_TEXT: Final = (
    "DO NOT EDIT - This resource is managed by gardener-resource-manager.\n"
    "Any modifications are discarded and the resource is returned to the original state."
)
MANAGED_BY: Final = "resources.gardener.cloud/managed-by"
GARBAGE_COLLECTABLE: Final = "resources.gardener.cloud/garbage-collectable-reference"
REFERENCE_PREFIX: Final = "reference.resources.gardener.cloud/"

# On ManagedResources and other API objects, spec 10 §1.2.
FINALIZER: Final = "resources.gardener.cloud/gardener-resource-manager"
OPERATION: Final = "gardener.cloud/operation"
OPERATION_RECONCILE: Final = "reconcile"
OPERATION_RESTORE: Final = "restore"
OPERATION_MIGRATE: Final = "migrate"
OPERATION_WAIT_FOR_STATE: Final = "wait-for-state"
TIMESTAMP: Final = "gardener.cloud/timestamp"
DELETION_PROTECTED: Final = "gardener.cloud/deletion-protected"
CONFIRMATION_DELETION: Final = "confirmation.gardener.cloud/deletion"
ORIGIN_LABEL: Final = "origin"
NO_CLEANUP: Final = "shoot.gardener.cloud/no-cleanup"
ROLE: Final = "gardener.cloud/role"
ROLE_SEED_SYSTEM_COMPONENT: Final = "seed-system-component"
CARE_CONDITION_TYPE: Final = "care.gardener.cloud/condition-type"
SECRET_NAME_PREFIX: Final = "managedresource-"  # noqa: S105 - the prefix of a name
CLUSTER_IDENTITY: Final = "cluster-identity"

# On DNSRecords.
IP_STACK: Final = "dns.gardener.cloud/ip-stack"

# On Gardens, the operator's Extensions and what they refer to, spec 20 §4 and spec 21 §1.1.
OPERATOR_FINALIZER: Final = "gardener.cloud/operator"
REFERENCE_PROTECTION: Final = "gardener.cloud/reference-protection"
OPERATOR_IGNORE: Final = "operator.gardener.cloud/ignore"
BREAK_GLASS: Final = "operator.gardener.cloud/break-glass"
EXPLICIT_DNS_RECORDS: Final = "operator.gardener.cloud/explicit-dns-records"
AUTO_UPDATE_GARDENLET: Final = "operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref"

_TRUTHY: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})


def is_truthy(value: object) -> bool:
    """Return whether Go's boolean parser reads `value` as true; six spellings do (spec 10 §1.1)."""
    return isinstance(value, str) and value in _TRUTHY


def finalizer_for(resource_class: str) -> str:
    """Return the finalizer that an instance of `resource_class` adds to ManagedResources."""
    if resource_class in ("resources", "*"):
        return FINALIZER
    return f"{FINALIZER}-{resource_class}"
