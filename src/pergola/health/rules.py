"""When an object of a kind is healthy, and when it is rolled out: one table (spec 10 §8.3, §9).

Everything here is a pure function of the live object; whatever is missing or mistyped in it reads
as absent.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from pergola.api.marks import SKIP_HEALTH_CHECK
from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    annotations_of,
    map_at,
    maps_at,
)
from pergola.health.conditions import Wanted, condition, conditions_problem
from pergola.health.numbers import generation_problem, number, scaled

Problem = Callable[[JsonObject], str | None]


class Rule(NamedTuple):
    """How objects of a kind are judged; None where there is nothing to judge."""

    unhealthy: Problem | None = None
    progressing: Problem | None = None


def check(obj: JsonObject) -> str | None:
    """Why an object is unhealthy, or None; kinds without a rule are healthy by existing."""
    rule = _RULES.get(GroupVersionKind.of(obj).group_kind)
    if rule is None or rule.unhealthy is None or is_skipped(obj):
        return None
    return rule.unhealthy(obj)


def progressing(obj: JsonObject) -> str | None:
    """Why an object is still being rolled out, or None; the count of pods is `pods_problem`."""
    rule = _RULES.get(GroupVersionKind.of(obj).group_kind)
    if rule is None or rule.progressing is None or is_skipped(obj):
        return None
    return rule.progressing(obj)


def is_skipped(obj: JsonObject) -> bool:
    """Whether the live object asks not to be judged (exactly `true` counts)."""
    return annotations_of(obj).get(SKIP_HEALTH_CHECK) == "true"


def has_health_rule(kind: GroupKind) -> bool:
    """Whether more than its existence counts for the health of a kind."""
    rule = _RULES.get(kind)
    return rule is not None and rule.unhealthy is not None


def first(*problems: str | None) -> str | None:
    """The first problem that there is."""
    return next((problem for problem in problems if problem is not None), None)


# Workloads


def deployment_unhealthy(obj: JsonObject) -> str | None:
    """A Deployment needs its minimum availability; a rolling update is none of its troubles."""
    return first(
        generation_problem(obj),
        conditions_problem(
            obj,
            (
                Wanted("Available"),
                Wanted("Progressing", optional=True),
                Wanted("ReplicaFailure", "False", optional=True),
            ),
        ),
    )


def deployment_progressing(obj: JsonObject) -> str | None:
    """A Deployment is rolled out when its newest ReplicaSet is available."""
    behind = generation_problem(obj)
    if behind is not None:
        return behind
    found = condition(obj, "Progressing")
    if found is None:
        return "condition Progressing is missing"
    if found.get("status") == "True" and found.get("reason") == "NewReplicaSetAvailable":
        return None
    text = found.get("message") or ""
    return f"condition Progressing is {found.get('status')}: {found.get('reason')} {text}".strip()


def stateful_set_unhealthy(obj: JsonObject) -> str | None:
    """A StatefulSet needs all its replicas ready."""
    return first(
        generation_problem(obj), _ready_replicas(obj, number(obj, "spec", "replicas", default=1))
    )


def stateful_set_progressing(obj: JsonObject) -> str | None:
    """A StatefulSet is rolled out when all its replicas are updated."""
    return first(generation_problem(obj), _updated_replicas(obj))


def daemon_set_unhealthy(obj: JsonObject, ignored: int = 0) -> str | None:
    """A DaemonSet needs a pod on each node; during an update some may be unavailable.

    Args:
        ignored: unavailable pods that do not count.
    """
    behind = generation_problem(obj)
    if behind is not None:
        return behind
    desired = number(obj, "status", "desiredNumberScheduled")
    current = number(obj, "status", "currentNumberScheduled")
    misscheduled = number(obj, "status", "numberMisscheduled")
    unavailable = max(0, number(obj, "status", "numberUnavailable") - ignored)
    allowed = _unavailable_allowed(obj, desired)
    if current < desired:
        return f"{current} of {desired} pods are scheduled"
    if misscheduled > 0:
        return f"{misscheduled} pods run on nodes where they should not"
    if unavailable > allowed:
        return f"{unavailable} pods are unavailable, at most {allowed} may be"
    return None


def _unavailable_allowed(obj: JsonObject, desired: int) -> int:
    if number(obj, "status", "updatedNumberScheduled") >= desired:
        return 0
    strategy = map_at(obj, "spec", "updateStrategy")
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return 0
    return scaled(map_at(strategy, "rollingUpdate").get("maxUnavailable"), desired)


def daemon_set_progressing(obj: JsonObject) -> str | None:
    """A DaemonSet is rolled out when all its pods are updated."""
    updated = number(obj, "status", "updatedNumberScheduled")
    desired = number(obj, "status", "desiredNumberScheduled")
    late = f"{updated} of {desired} pods are updated" if updated < desired else None
    return first(generation_problem(obj), late)


def replica_set_unhealthy(obj: JsonObject) -> str | None:
    """A ReplicaSet or ReplicationController needs the replicas that it names ready."""
    return first(generation_problem(obj), _ready_replicas(obj, number(obj, "spec", "replicas")))


def pod_unhealthy(obj: JsonObject) -> str | None:
    """A Pod runs, or has run to its end."""
    phase = map_at(obj, "status").get("phase")
    return None if phase in ("Running", "Succeeded") else f"phase is {phase or 'unknown'}"


def job_unhealthy(obj: JsonObject) -> str | None:
    """A Job has not failed."""
    return conditions_problem(obj, (Wanted("Failed", "False", optional=True),))


# Others


def service_unhealthy(obj: JsonObject) -> str | None:
    """A load balancer has an address."""
    if map_at(obj, "spec").get("type") != "LoadBalancer":
        return None
    if maps_at(obj, "status", "loadBalancer", "ingress"):
        return None
    return "the load balancer has no ingress yet"


def crd_unhealthy(obj: JsonObject) -> str | None:
    """A CRD is served."""
    return conditions_problem(
        obj,
        (
            Wanted("NamesAccepted"),
            Wanted("Established"),
            Wanted("Terminating", "False", optional=True),
        ),
    )


def monitoring_unhealthy(obj: JsonObject) -> str | None:
    """A Prometheus or Alertmanager is available with all its replicas."""
    replicas = number(obj, "spec", "replicas", default=1)
    available = number(obj, "status", "availableReplicas")
    few = f"{available} of {replicas} replicas are available" if available < replicas else None
    return first(_outdated(obj, "Available"), conditions_problem(obj, (Wanted("Available"),)), few)


def monitoring_progressing(obj: JsonObject) -> str | None:
    """A Prometheus or Alertmanager is reconciled and all its replicas are updated."""
    return first(
        _outdated(obj, "Reconciled"),
        conditions_problem(obj, (Wanted("Reconciled"),)),
        _updated_replicas(obj),
    )


def autoscaler_unhealthy(obj: JsonObject) -> str | None:
    """A VerticalPodAutoscaler has a configuration that it supports."""
    return conditions_problem(obj, (Wanted("ConfigUnsupported", "False", optional=True),))


def certificate_unhealthy(obj: JsonObject) -> str | None:
    """A Certificate is ready."""
    return first(conditions_problem(obj, (Wanted("Ready", optional=True),)), issuer_unhealthy(obj))


def issuer_unhealthy(obj: JsonObject) -> str | None:
    """An Issuer is ready."""
    state = map_at(obj, "status").get("state")
    return None if state == "Ready" else f"state is {state or 'unknown'}, expected Ready"


def _ready_replicas(obj: JsonObject, replicas: int) -> str | None:
    ready = number(obj, "status", "readyReplicas")
    return None if ready >= replicas else f"{ready} of {replicas} replicas are ready"


def _updated_replicas(obj: JsonObject) -> str | None:
    replicas = number(obj, "spec", "replicas", default=1)
    updated = number(obj, "status", "updatedReplicas")
    return None if updated >= replicas else f"{updated} of {replicas} replicas are updated"


def _outdated(obj: JsonObject, kind: str) -> str | None:
    found = condition(obj, kind)
    if found is None:
        return None
    observed = number(found, "observedGeneration")
    generation = number(obj, "metadata", "generation")
    if observed >= generation:
        return None
    return f"condition {kind} is about generation {observed}, not about generation {generation}"


_MONITORING: Final = Rule(monitoring_unhealthy, monitoring_progressing)
_RULES: Final = {
    GroupKind("apps", "Deployment"): Rule(deployment_unhealthy, deployment_progressing),
    GroupKind("apps", "StatefulSet"): Rule(stateful_set_unhealthy, stateful_set_progressing),
    GroupKind("apps", "DaemonSet"): Rule(daemon_set_unhealthy, daemon_set_progressing),
    GroupKind("apps", "ReplicaSet"): Rule(replica_set_unhealthy),
    GroupKind("", "ReplicationController"): Rule(replica_set_unhealthy),
    GroupKind("", "Pod"): Rule(pod_unhealthy),
    GroupKind("batch", "Job"): Rule(job_unhealthy),
    GroupKind("", "Service"): Rule(service_unhealthy),
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): Rule(crd_unhealthy),
    GroupKind("monitoring.coreos.com", "Prometheus"): _MONITORING,
    GroupKind("monitoring.coreos.com", "Alertmanager"): _MONITORING,
    GroupKind("autoscaling.k8s.io", "VerticalPodAutoscaler"): Rule(autoscaler_unhealthy),
    GroupKind("cert.gardener.cloud", "Certificate"): Rule(
        certificate_unhealthy, generation_problem
    ),
    GroupKind("cert.gardener.cloud", "Issuer"): Rule(issuer_unhealthy, generation_problem),
}


def kinds() -> Iterable[GroupKind]:
    """All kinds with a rule."""
    return _RULES.keys()
