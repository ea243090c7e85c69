"""Mapping between Clusters and InfraClusters (spec 50 §2, §4.5)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from pergola.api.cluster_api import CLUSTER, CLUSTER_GROUP, CLUSTER_NAME
from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    Key,
    labels_of,
    map_at,
    namespace_of,
    owner_references_of,
)
from pergola.externally_managed.predicate import is_externally_managed
from pergola.kube.errors import KubeError
from pergola.runtime.caching.cache import Change

Read = Callable[[Key], Awaitable[JsonObject | None]]
"""Reads an InfraCluster; returns None if it does not exist, or raises a KubeError."""

_CLUSTER_KIND: Final = CLUSTER.kind


def infrastructure_reference(cluster: Mapping[str, Any]) -> tuple[GroupKind, Key] | None:
    """Return the kind and key of a Cluster's InfraCluster; None if it names none.

    Accepts `apiGroup` (contract v1beta2) and `apiVersion` (v1beta1).
    """
    reference = map_at(cluster, "spec", "infrastructureRef")
    name, kind = reference.get("name"), reference.get("kind")
    if not (isinstance(name, str) and name and isinstance(kind, str) and kind):
        return None
    group = reference.get("apiGroup")
    if not isinstance(group, str):
        group = str(reference.get("apiVersion", "")).rpartition("/")[0]
    return GroupKind(group, kind), Key(namespace_of(cluster), name)


def infra_clusters(change: Change[JsonObject], kind: GroupKind) -> list[Key]:
    """Return the InfraClusters of a kind that a Cluster references before or after a change."""
    clusters = filter(None, (change.old, change.new))
    references = filter(None, map(infrastructure_reference, clusters))
    return [key for found, key in references if found == kind]


async def cluster_to_infra_cluster(
    cluster: JsonObject, desired: GroupKind, read: Read, *, manages_external: bool = False
) -> list[Key]:
    """Return the InfraCluster that an event of its Cluster triggers; none if it is external.

    Without this check, unpausing a Cluster would trigger the provider for an external object.

    Args:
        desired: the provider's kind.
        manages_external: for external managers, which handle only external ones.
    """
    if cluster.get("kind") != _CLUSTER_KIND:
        return []
    reference = infrastructure_reference(cluster)
    if reference is None or reference[0] != desired:
        return []
    try:
        obj = await read(reference[1])
    except KubeError:
        return []
    if obj is None or is_externally_managed(obj) is not manages_external:
        return []
    return [reference[1]]


def owner_cluster(obj: Mapping[str, Any]) -> Key | None:
    """Return the Cluster that an object belongs to, by its owner reference or its label."""
    for owner in owner_references_of(obj):
        gvk = GroupVersionKind.of(owner)
        if (gvk.group, gvk.kind) == (CLUSTER_GROUP, _CLUSTER_KIND):
            return Key(namespace_of(obj), str(owner.get("name", "")))
    name = labels_of(obj).get(CLUSTER_NAME)
    return Key(namespace_of(obj), name) if name else None
