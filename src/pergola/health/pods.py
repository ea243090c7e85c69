"""Counting a Deployment's pods: while an old one runs, the rollout is in progress.

Follows spec 10 §9, with the exceptions of B17: pods that belong to another controller, have ended,
or should have been gone long ago are not counted.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    deletion_timestamp_of,
    labels_of,
    map_at,
    maps_at,
    name_of,
    namespace_of,
    owner_references_of,
)
from pergola.health.rules import is_skipped
from pergola.health.times import read_time
from pergola.health.workloads import deployment_progressing, deployment_unhealthy, replicas
from pergola.kube.selectors import SelectorError, is_empty, matches

# The default time that pods stay on an unreachable node.
STALE_AFTER: Final = timedelta(minutes=5)

_DEPLOYMENT: Final = GroupKind("apps", "Deployment")
_TEMPLATE_HASH: Final = "pod-template-hash"
_GONE_REASONS: Final = ("Evicted", "NodeAffinity", "NodeLost", "Preempting")


def needs_pod_count(gvk: GroupVersionKind) -> bool:
    """Return whether the pods of objects of this kind are counted."""
    return gvk.group_kind == _DEPLOYMENT


def pods_problem(
    deployment: JsonObject, pods: Iterable[JsonObject], *, now: datetime | None = None
) -> str | None:
    """Return a problem if a Deployment has more or fewer pods than desired, or None.

    Args:
        pods: the pods of its namespace, or of all namespaces, with metadata (namespace, labels,
            ownerReferences, deletionTimestamp) and the phase, reason and conditions of the status;
            with metadata only, ended pods count as well.
        now: the current time; without it, terminating pods count forever.
    """
    return None if is_skipped(deployment) else _count_problem(deployment, pods, now)


def check_deployment_updated(
    deployment: JsonObject, pods: Iterable[JsonObject], *, now: datetime | None = None
) -> str | None:
    """Return why the update of a Deployment is incomplete, or None (spec 10 appendix A).

    The annotation that skips health checks is ignored. See `pods_problem` for the arguments.
    """
    return (
        deployment_progressing(deployment)
        or deployment_unhealthy(deployment)
        or _count_problem(deployment, pods, now)
    )


def pods_of(
    deployment: JsonObject, pods: Iterable[JsonObject], *, now: datetime | None = None
) -> Iterator[JsonObject]:
    """Yield the pods that count for a Deployment; none if its selector is empty.

    Raises:
        SelectorError: the selector has an unknown operator.
    """
    selector, namespace = map_at(deployment, "spec", "selector"), namespace_of(deployment)
    if is_empty(selector):
        return
    for pod in pods:
        if namespace_of(pod) != namespace or not matches(selector, labels_of(pod)):
            continue
        if is_relevant(pod) and not is_foreign(deployment, pod) and not _is_stale(pod, now):
            yield pod


def is_relevant(pod: JsonObject) -> bool:
    """Return whether a pod still counts; failed, finished and evicted ones do not."""
    status = map_at(pod, "status")
    if status.get("phase") in ("Succeeded", "Failed"):
        return False
    reason = str(status.get("reason") or "")
    if reason.startswith("OutOf") or any(gone in reason for gone in _GONE_REASONS):
        return False
    return not any(_says_gone(condition) for condition in maps_at(status, "conditions"))


def is_foreign(deployment: JsonObject, pod: JsonObject) -> bool:
    """Return whether the pod certainly does not belong to a ReplicaSet of the Deployment.

    ReplicaSets are not read: if a Deployment created one, its name consists of the Deployment's
    name and the hash in the labels of its pods. Other ReplicaSets may have been adopted, so their
    pods count, as do orphans.
    """
    owner = next((o for o in owner_references_of(pod) if o.get("controller") is True), None)
    if owner is None:
        return False
    if owner.get("kind") != "ReplicaSet":
        return True
    name, suffix = str(owner.get("name")), f"-{labels_of(pod).get(_TEMPLATE_HASH)}"
    return name.endswith(suffix) and name != name_of(deployment) + suffix


def _count_problem(
    deployment: JsonObject, pods: Iterable[JsonObject], now: datetime | None
) -> str | None:
    if is_empty(map_at(deployment, "spec", "selector")):
        return None  # only a Deployment that the API server would reject
    try:
        found = sum(1 for _ in pods_of(deployment, pods, now=now))
    except SelectorError as error:
        return f"spec.selector: {error}"
    desired = replicas(deployment)
    return None if found == desired else f"there are {found} pods, expected {desired}"


def _is_stale(pod: JsonObject, now: datetime | None) -> bool:
    """Return whether its grace period ended long ago: the node is lost, or a finalizer blocks."""
    due = read_time(deletion_timestamp_of(pod))
    return now is not None and due is not None and now - due > STALE_AFTER


def _says_gone(condition: JsonObject) -> bool:
    kind, status = condition.get("type"), condition.get("status")
    if kind == "DisruptionTarget":
        return bool(status == "True")
    return bool(kind == "Ready" and status == "False" and condition.get("reason") == "PodCompleted")
