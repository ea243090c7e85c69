"""The rules for health and rollout of objects, by kind: one table (spec 10 §8.3, §9).

Everything here is a pure function of the live object; missing or mistyped fields count as absent.
Rules apply to all versions of a group.
"""

from collections.abc import Callable
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
from pergola.health.conditions import Requirement, conditions_problem, requires
from pergola.health.daemon_sets import daemon_set_progressing, daemon_set_unhealthy
from pergola.health.monitoring import monitoring_progressing, monitoring_unhealthy
from pergola.health.numbers import generation_problem
from pergola.health.workloads import (
    deployment_progressing,
    deployment_unhealthy,
    pod_unhealthy,
    replica_set_unhealthy,
    stateful_set_progressing,
    stateful_set_unhealthy,
)


class Rule(NamedTuple):
    """The checks of a kind: each returns a problem, or None."""

    unhealthy: Callable[[JsonObject], str | None]
    progressing: Callable[[JsonObject], str | None] | None = None


def check(obj: JsonObject) -> str | None:
    """Return why an object is unhealthy, or None; kinds without a rule are always healthy."""
    rule = _RULES.get(GroupVersionKind.of(obj).group_kind)
    return None if rule is None or is_skipped(obj) else rule.unhealthy(obj)


def progressing(obj: JsonObject) -> str | None:
    """Return why an object is still being rolled out, or None.

    A Deployment without a problem here also needs its pods counted: see `pods_problem`.
    """
    rule = _RULES.get(GroupVersionKind.of(obj).group_kind)
    if rule is None or rule.progressing is None or is_skipped(obj):
        return None
    return rule.progressing(obj)


def is_skipped(obj: JsonObject) -> bool:
    """Return whether the live object opts out of health checks (only `true` counts)."""
    return annotations_of(obj).get(SKIP_HEALTH_CHECK) == "true"


def has_rule(gvk: GroupVersionKind) -> bool:
    """Return whether the health of a kind requires more than existence."""
    return gvk.group_kind in _RULES


def service_unhealthy(obj: JsonObject) -> str | None:
    """Check that a load balancer has an address."""
    if map_at(obj, "spec").get("type") != "LoadBalancer":
        return None
    if maps_at(obj, "status", "loadBalancer", "ingress"):
        return None
    return "the load balancer has no address yet: status.loadBalancer.ingress is empty"


def issuer_unhealthy(obj: JsonObject) -> str | None:
    """Check that an Issuer is ready."""
    status = map_at(obj, "status")
    state, message = status.get("state"), status.get("message")
    if state == "Ready":
        return None
    return f"state is {state or 'unknown'}, expected Ready" + (f": {message}" if message else "")


def certificate_unhealthy(obj: JsonObject) -> str | None:
    """Check that a Certificate is ready: by its state, and by its condition if it has one."""
    return conditions_problem(obj, (Requirement("Ready", optional=True),)) or issuer_unhealthy(obj)


_CRD: Final = Rule(
    requires(
        Requirement("NamesAccepted"),
        Requirement("Established"),
        Requirement("Terminating", "False", optional=True),
    )
)
_JOB: Final = Rule(requires(Requirement("Failed", "False", optional=True)))
_MONITORING: Final = Rule(monitoring_unhealthy, monitoring_progressing)
_REPLICA_SET: Final = Rule(replica_set_unhealthy)
# Its observedGeneration is ignored on purpose: the recommender does not maintain it.
_VPA: Final = Rule(requires(Requirement("ConfigUnsupported", "False", optional=True)))

_TABLE: Final = {
    ("apps/v1", "Deployment"): Rule(deployment_unhealthy, deployment_progressing),
    ("apps/v1", "StatefulSet"): Rule(stateful_set_unhealthy, stateful_set_progressing),
    ("apps/v1", "DaemonSet"): Rule(daemon_set_unhealthy, daemon_set_progressing),
    ("apps/v1", "ReplicaSet"): _REPLICA_SET,
    ("v1", "ReplicationController"): _REPLICA_SET,
    ("v1", "Pod"): Rule(pod_unhealthy),
    ("batch/v1", "Job"): _JOB,
    ("v1", "Service"): Rule(service_unhealthy),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): _CRD,
    ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"): _CRD,
    ("monitoring.coreos.com/v1", "Prometheus"): _MONITORING,
    ("monitoring.coreos.com/v1", "Alertmanager"): _MONITORING,
    ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"): _VPA,
    ("cert.gardener.cloud/v1alpha1", "Certificate"): Rule(
        certificate_unhealthy, generation_problem
    ),
    ("cert.gardener.cloud/v1alpha1", "Issuer"): Rule(issuer_unhealthy, generation_problem),
}
_KINDS: Final = {GroupVersionKind.parse(*kind): rule for kind, rule in _TABLE.items()}
_RULES: Final[dict[GroupKind, Rule]] = {gvk.group_kind: rule for gvk, rule in _KINDS.items()}

HEALTH_KINDS: Final = tuple(_KINDS)
"""The kinds with a rule for their health."""
PROGRESSING_KINDS: Final = tuple(gvk for gvk, rule in _KINDS.items() if rule.progressing)
"""The kinds with a rule for the progress of their rollout."""
