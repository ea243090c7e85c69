"""Counting a Deployment's pods: an old one that still runs means that the rollout goes on (§9)."""

from collections.abc import Iterable
from typing import Final

from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    labels_of,
    map_at,
    maps_at,
)
from pergola.health.numbers import number
from pergola.health.rules import is_skipped
from pergola.kube.selectors import SelectorError, is_empty, matches

_DEPLOYMENT: Final = GroupKind("apps", "Deployment")
_GONE_REASONS: Final = ("Evicted", "NodeAffinity", "NodeLost", "Preempting")


def needs_pod_count(kind: GroupVersionKind) -> bool:
    """Whether the pods of objects of this kind are counted."""
    return kind.group_kind == _DEPLOYMENT


def pods_problem(deployment: JsonObject, pods: Iterable[JsonObject]) -> str | None:
    """Whether the Deployment has more or fewer pods than it should.

    Args:
        pods: of its namespace; of each, metadata.labels, status.phase, status.reason and
            status.conditions are read.
    """
    selector = map_at(deployment, "spec", "selector")
    if is_skipped(deployment) or is_empty(selector):
        return None
    wanted = number(deployment, "spec", "replicas", default=1)
    try:
        found = sum(matches(selector, labels_of(pod)) and is_relevant(pod) for pod in pods)
    except SelectorError as error:
        return str(error)
    return None if found == wanted else f"there are {found} pods, expected {wanted}"


def is_relevant(pod: JsonObject) -> bool:
    """Whether a pod still counts; one that failed, finished or was evicted does not."""
    status = map_at(pod, "status")
    if status.get("phase") in ("Succeeded", "Failed"):
        return False
    reason = str(status.get("reason") or "")
    if reason.startswith("OutOf") or any(gone in reason for gone in _GONE_REASONS):
        return False
    return not any(_says_gone(condition) for condition in maps_at(status, "conditions"))


def _says_gone(condition: JsonObject) -> bool:
    kind, status = condition.get("type"), condition.get("status")
    if kind == "DisruptionTarget":
        return bool(status == "True")
    return bool(kind == "Ready" and status == "False" and condition.get("reason") == "PodCompleted")
