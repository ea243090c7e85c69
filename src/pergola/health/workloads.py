"""Deployments, StatefulSets, ReplicaSets, ReplicationControllers and Pods (spec 10 §8.3, §9)."""

from typing import Final

from pergola.api.objects import JsonObject, map_at
from pergola.health.conditions import Requirement, condition, conditions_problem, describe
from pergola.health.numbers import generation_problem, number

AVAILABLE: Final = (
    Requirement("Available"),
    Requirement("Progressing", optional=True),
    Requirement("ReplicaFailure", "False", optional=True),
)


def deployment_unhealthy(obj: JsonObject) -> str | None:
    """Check that a Deployment has its minimum availability, even during a rolling update."""
    return generation_problem(obj) or conditions_problem(obj, AVAILABLE)


def deployment_progressing(obj: JsonObject) -> str | None:
    """Check that the newest ReplicaSet of a Deployment is available."""
    return generation_problem(obj) or _newest_problem(obj)


def stateful_set_unhealthy(obj: JsonObject) -> str | None:
    """Check that all replicas of a StatefulSet are ready."""
    return generation_problem(obj) or _ready_problem(obj, replicas(obj))


def stateful_set_progressing(obj: JsonObject) -> str | None:
    """Check that all replicas of a StatefulSet are updated."""
    return generation_problem(obj) or updated_problem(obj)


def replica_set_unhealthy(obj: JsonObject) -> str | None:
    """Check that a ReplicaSet or ReplicationController has its desired replicas ready."""
    return generation_problem(obj) or _ready_problem(obj, number(obj, "spec", "replicas"))


def pod_unhealthy(obj: JsonObject) -> str | None:
    """Check that a Pod runs, or has completed."""
    phase = map_at(obj, "status").get("phase")
    if phase in ("Running", "Succeeded"):
        return None
    return f"phase is {phase or 'unknown'}, expected Running or Succeeded"


def replicas(obj: JsonObject) -> int:
    """Return the desired number of pods of a workload."""
    return number(obj, "spec", "replicas", default=1)


def updated_problem(obj: JsonObject) -> str | None:
    """Return a problem if some replicas still run an earlier template, or None."""
    updated, desired = number(obj, "status", "updatedReplicas"), replicas(obj)
    return None if updated >= desired else f"{updated} of {desired} replicas are updated"


def _newest_problem(obj: JsonObject) -> str | None:
    found = condition(obj, "Progressing")
    if found is None:
        return "condition Progressing is missing"
    done = found.get("status") == "True" and found.get("reason") == "NewReplicaSetAvailable"
    return None if done else describe(found)


def _ready_problem(obj: JsonObject, desired: int) -> str | None:
    ready = number(obj, "status", "readyReplicas")
    return None if ready >= desired else f"{ready} of {desired} replicas are ready"
