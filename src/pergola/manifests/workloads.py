"""Placement, users and disruption budgets of pods."""

from collections.abc import Mapping, Sequence
from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests.containers import RUNTIME_DEFAULT
from pergola.manifests.objects import manifest, selector

LINUX: Final = {"kubernetes.io/os": "linux"}
"""A node selector."""

TOLERATE_EVERYTHING: Final[Sequence[JsonObject]] = ({"operator": "Exists"},)
"""For pods that a node needs to become ready."""

ON_EVERY_NODE: Final = "system-node-critical"
"""The priority class of such pods."""

SYSTEM_PRIORITY: Final = "system-cluster-critical"
"""A priority class that exists in every cluster; pods of a missing class are never created."""

_HOST: Final = "kubernetes.io/hostname"


def non_root(user: int, *, fs_group: bool = False) -> JsonObject:
    """Return the security context of a pod that runs as a user, with the default profile."""
    context: JsonObject = {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": user,
        "seccompProfile": RUNTIME_DEFAULT,
    }
    return context | ({"fsGroup": user} if fs_group else {})


def spread(labels: Mapping[str, str]) -> JsonObject:
    """Return an affinity that prefers different nodes for pods with the same labels."""
    term = {"labelSelector": selector(labels), "topologyKey": _HOST}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def at_most_one_per_node(labels: Mapping[str, str]) -> JsonObject:
    """Return an affinity that never puts two pods with the same labels on one node."""
    term: JsonObject = {"labelSelector": selector(labels), "topologyKey": _HOST}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def disruption_budget(
    name: str,
    namespace: str,
    pods: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
    *,
    available: int | None = None,
) -> JsonObject:
    """Return a budget that allows one eviction at a time, and any of unready pods.

    Args:
        pods: labels of the pods; also used for the budget, unless it has its own.
        available: the number of pods that must remain, instead of all but one.
    """
    limit = {"maxUnavailable": 1} if available is None else {"minAvailable": available}
    return manifest(
        "policy/v1",
        "PodDisruptionBudget",
        name,
        namespace=namespace,
        labels=pods if labels is None else labels,
        spec={
            **limit,
            "selector": selector(pods),
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    )
