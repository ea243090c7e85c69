"""DaemonSets: one pod per node, some of which an update may remove (spec 10 §8.3, §9)."""

from collections.abc import Collection, Iterable

from pergola.api.objects import (
    JsonObject,
    labels_of,
    map_at,
    name_of,
    namespace_of,
    owner_references_of,
    uid_of,
)
from pergola.health.conditions import has_status
from pergola.health.numbers import generation_problem, number, scaled
from pergola.kube.selectors import SelectorError, is_empty, matches


def daemon_set_unhealthy(obj: JsonObject) -> str | None:
    """Check that a DaemonSet has a pod on each node; some may be unavailable during an update."""
    return generation_problem(obj) or _pods_problem(obj, forgiven=0)


def daemon_set_progressing(obj: JsonObject) -> str | None:
    """Check that all pods of a DaemonSet are updated."""
    return generation_problem(obj) or _update_problem(obj)


def check_daemon_set_preserved(
    obj: JsonObject, nodes: Iterable[JsonObject], pods: Iterable[JsonObject]
) -> str | None:
    """Tolerate pods of a DaemonSet that are not ready because their broken node is preserved.

    Args:
        nodes: all nodes, with `status.conditions`.
        pods: the pods of the DaemonSet's namespace (others are ignored), with metadata (labels,
            ownerReferences), `spec.nodeName` and `status.conditions`.
    """
    preserved = {name_of(node) for node in nodes if _is_preserved(node)}
    forgiven = sum(_is_on(preserved, pod) and _is_unready_pod(obj, pod) for pod in pods)
    return generation_problem(obj) or _pods_problem(obj, forgiven)


def _pods_problem(obj: JsonObject, forgiven: int) -> str | None:
    desired = number(obj, "status", "desiredNumberScheduled")
    scheduled = number(obj, "status", "currentNumberScheduled")
    misscheduled = number(obj, "status", "numberMisscheduled")
    unavailable = max(0, number(obj, "status", "numberUnavailable") - forgiven)
    allowed = _unavailable_allowed(obj, desired)
    if scheduled < desired:
        return f"{scheduled} of {desired} pods are scheduled"
    if misscheduled > 0:
        return f"{misscheduled} pods run on nodes where they should not"
    if unavailable > allowed:
        return f"{unavailable} of {desired} pods are unavailable, at most {allowed} may be"
    return None


def _unavailable_allowed(obj: JsonObject, desired: int) -> int:
    strategy = map_at(obj, "spec", "updateStrategy")
    if _update_problem(obj) is None or strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return 0
    return scaled(map_at(strategy, "rollingUpdate").get("maxUnavailable"), desired)


def _update_problem(obj: JsonObject) -> str | None:
    updated = number(obj, "status", "updatedNumberScheduled")
    desired = number(obj, "status", "desiredNumberScheduled")
    return None if updated >= desired else f"{updated} of {desired} pods are updated"


def _is_preserved(node: JsonObject) -> bool:
    return has_status(node, "Preserved", "True") and has_status(node, "Ready", "False", "Unknown")


def _is_on(nodes: Collection[str], pod: JsonObject) -> bool:
    node = map_at(pod, "spec").get("nodeName")
    return isinstance(node, str) and node in nodes


def _is_unready_pod(obj: JsonObject, pod: JsonObject) -> bool:
    return not has_status(pod, "Ready", "True") and _owns(obj, pod)


def _owns(obj: JsonObject, pod: JsonObject) -> bool:
    if namespace_of(pod) != namespace_of(obj):
        return False
    owners = [owner.get("uid") for owner in owner_references_of(pod) if owner.get("controller")]
    if owners:
        return uid_of(obj) in owners
    selector = map_at(obj, "spec", "selector")
    try:
        return not is_empty(selector) and matches(selector, labels_of(pod))
    except SelectorError:
        return False
