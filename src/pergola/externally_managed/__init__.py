"""Cluster infrastructure that is managed by another system: Cluster API's contract (spec 50).

For authors of InfraCluster providers: `predicate` (objects to leave alone), `mapping` (from a
Cluster to its InfraCluster), `webhook` (keeps the annotation in place), `contract` (the fields that
core reads, in both generations), `conditions`. The external manager uses the same parts.

Not for: machines, control planes and bootstrap, which the annotation does not affect.
"""

from pergola.externally_managed.conditions import with_condition
from pergola.externally_managed.contract import (
    Contract,
    ContractError,
    Endpoint,
    FailureDomain,
    contract_of,
    endpoint_of,
    failure_domains_of,
    is_provisioned,
)
from pergola.externally_managed.mapping import (
    cluster_to_infra_cluster,
    infra_clusters,
    infrastructure_reference,
    owner_cluster,
)
from pergola.externally_managed.predicate import (
    has_watch_label,
    is_externally_managed,
    is_paused,
    manager_of,
    resource_is_not_externally_managed,
)
from pergola.externally_managed.webhook import AnnotationGuard, registration

__all__ = [
    "AnnotationGuard",
    "Contract",
    "ContractError",
    "Endpoint",
    "FailureDomain",
    "cluster_to_infra_cluster",
    "contract_of",
    "endpoint_of",
    "failure_domains_of",
    "has_watch_label",
    "infra_clusters",
    "infrastructure_reference",
    "is_externally_managed",
    "is_paused",
    "is_provisioned",
    "manager_of",
    "owner_cluster",
    "registration",
    "resource_is_not_externally_managed",
    "with_condition",
]
