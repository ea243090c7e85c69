"""opentelemetry-operator: runs log collectors (spec 20 §16.8)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components import task_names
from pergola.garden.components.component import Component, Managed, Rendered
from pergola.garden.components.observability.operators import Operator, operator_objects
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import READ, env, from_pod, non_root, requests, role, rule

NAME: Final = "opentelemetry-operator"

_GROUP: Final = "opentelemetry.io"
_LABELS: Final = {
    "app": NAME,
    "role": "observability",
    "gardener.cloud/role": "observability",
}
_ALL: Final = ("create", "delete", "get", "list", "patch", "update", "watch")
_CHANGE: Final = ("get", "list", "patch", "update", "watch")
_USER: Final = 65532


def render(landscape: Landscape) -> Rendered:
    """Return the operator; the condition of the runtime components covers it."""
    operator = _operator()
    objects = (
        *operator_objects(operator, landscape),
        *role(NAME, NAMESPACE, _namespace_rules(), operator.account, labels=_LABELS),
    )
    return Rendered(managed=(Managed(name=NAME, objects=objects),))


def _operator() -> Operator:
    return Operator(
        name=NAME,
        labels=_LABELS,
        rules=_rules(),
        container={
            "args": [
                "--metrics-addr=127.0.0.1:8080",
                "--enable-leader-election",
                "--zap-log-level=info",
                "--zap-time-encoding=rfc3339nano",
            ],
            "env": env(
                ENABLE_WEBHOOKS="false",
                NAMESPACE=from_pod("metadata.namespace"),
                SERVICE_ACCOUNT_NAME=from_pod("spec.serviceAccountName"),
            ),
            "resources": requests(cpu="10m", memory="64Mi"),
            "securityContext": {"allowPrivilegeEscalation": False},
        },
        pod={"securityContext": non_root(_USER, fs_group=True)},
        least_memory="64Mi",
        is_spread=True,
    )


def _rules() -> list[JsonObject]:
    statuses = ["clusterobservabilities", "opampbridges", "targetallocators"]
    return [
        rule("", ["configmaps", "pods", "serviceaccounts", "services"], _ALL),
        _events(),
        rule("", ["namespaces", "secrets"], READ),
        rule("apps", ["daemonsets", "deployments", "statefulsets"], _ALL),
        rule("apps", ["replicasets"], READ),
        rule("autoscaling", ["horizontalpodautoscalers"], _ALL),
        rule("batch", ["jobs"], READ),
        rule("coordination.k8s.io", ["leases"], ["create", "get", "list", "update"]),
        rule("monitoring.coreos.com", ["podmonitors", "servicemonitors"], _ALL),
        rule("networking.k8s.io", ["ingresses"], _ALL),
        rule("networking.k8s.io", ["networkpolicies"], ["list", "watch"]),
        rule(_GROUP, ["instrumentations", "opentelemetrycollectors"], _CHANGE),
        rule(_GROUP, statuses, _ALL),
        rule(_GROUP, [f"{kind}/finalizers" for kind in statuses[:2]], ["update"]),
        rule(_GROUP, _statuses(), ["get", "patch", "update"]),
        rule("policy", ["poddisruptionbudgets"], _ALL),
    ]


def _statuses() -> list[str]:
    return [
        "clusterobservabilities/status",
        "opampbridges/status",
        "opentelemetrycollectors/finalizers",
        "opentelemetrycollectors/status",
        "targetallocators/status",
    ]


def _namespace_rules() -> list[JsonObject]:
    return [rule("", ["configmaps"], ["list", "patch", "create", "get", "watch"]), _events()]


def _events() -> JsonObject:
    return {
        "apiGroups": ["", "events.k8s.io"],
        "resources": ["events"],
        "verbs": ["create", "patch"],
    }


OPENTELEMETRY_OPERATOR: Final = Component(
    name=NAME, deploy=task_names.OPENTELEMETRY_OPERATOR, render=render
)
