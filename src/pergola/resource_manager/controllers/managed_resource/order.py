"""The order in which objects are applied, and the effect of failures (spec 10 §4.8, B10)."""

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Final

from pergola.api.kinds import CRD
from pergola.api.objects import GroupKind, map_at
from pergola.resource_manager.controllers.managed_resource.plan import Planned

# Only the name of the kind counts, not its group.
KINDS_IN_ORDER: Final = (
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
)
_RANKS: Final = {kind: rank for rank, kind in enumerate(KINDS_IN_ORDER)}
_NAMESPACE: Final = GroupKind("", "Namespace")


def rank(planned: Planned) -> tuple[int, str, str, str]:
    """Sort by kind, then name, then namespace; kinds that are not listed come last, by name."""
    kind = planned.gvk.kind
    listed = _RANKS.get(kind)
    if listed is None:
        return len(_RANKS), kind, planned.key.name, planned.key.namespace
    return listed, "", planned.key.name, planned.key.namespace


def waves(objects: Sequence[Planned]) -> list[list[Planned]]:
    """Group the objects in order; the objects of one group may be applied concurrently."""
    ordered = sorted(objects, key=rank)
    return [list(wave) for _, wave in groupby(ordered, key=lambda planned: planned.gvk.kind)]


def depends_on(planned: Planned, failed: Collection[Planned]) -> bool:
    """Return whether the object cannot be applied because an earlier one failed.

    The content of a Namespace depends on it, and the instances of a CRD on the CRD.
    """
    return any(_needs(planned, other) for other in failed)


def _needs(planned: Planned, other: Planned) -> bool:
    kind = other.gvk.group_kind
    if kind == _NAMESPACE:
        return planned.key.namespace == other.key.name
    # CRD names end with the group, so that only few need to be read.
    if kind != CRD.group_kind or other.key.name.partition(".")[2] != planned.gvk.group:
        return False
    spec = map_at(other.manifest(), "spec")
    names = map_at(spec, "names")
    return planned.gvk.group_kind == GroupKind(spec.get("group") or "", names.get("kind") or "")
