"""prometheus-operator: runs each Prometheus and each Alertmanager (spec 20 §16.8)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.observability.conventions import managed
from pergola.garden.components.observability.operators import Operator, operator_objects
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import (
    READ,
    RUNTIME_DEFAULT,
    manifest,
    requests,
    restricted,
    rule,
    service,
    service_port,
)

NAME: Final = "prometheus-operator"
PROMETHEUS_ROLE: Final = "prometheus"
"""The ClusterRole of every Prometheus of the garden."""

_LABELS: Final = {"app": NAME}
_SHOOT_ROLE: Final = "prometheus-shoot"
_PORT: Final = 8080
_RELOADER: Final = "configmap-reloader"
_RBAC: Final = "rbac.authorization.k8s.io/v1"
_ALL: Final = ("create", *READ, "patch", "update", "delete", "deletecollection")


def render(landscape: Landscape) -> Rendered:
    """Return the operator, and the roles of the instances that it runs."""
    objects = (
        *operator_objects(_operator(landscape), landscape),
        _service(),
        manifest(_RBAC, "ClusterRole", PROMETHEUS_ROLE, rules=_prometheus_rules()),
        manifest(_RBAC, "Role", _SHOOT_ROLE, namespace=NAMESPACE, rules=[_discovery()]),
    )
    return Rendered(managed=(managed(NAME, *objects),))


def _operator(landscape: Landscape) -> Operator:
    return Operator(
        name=NAME,
        labels=_LABELS,
        rules=_rules(),
        container={
            "args": [
                f"--prometheus-config-reloader={landscape.image(_RELOADER)}",
                "--config-reloader-cpu-request=0",
                "--config-reloader-cpu-limit=0",
                "--config-reloader-memory-request=20M",
                "--config-reloader-memory-limit=0",
                "--enable-config-reloader-probes=false",
            ],
            "env": [{"name": "GOGC", "value": "30"}],
            "ports": [{"name": "http", "containerPort": _PORT}],
            "resources": requests(cpu="100m", memory="100Mi"),
            "securityContext": restricted(),
        },
        pod={
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "seccompProfile": RUNTIME_DEFAULT,
            }
        },
        least_memory="100Mi",
    )


def _rules() -> list[JsonObject]:
    return [
        rule("monitoring.coreos.com", _monitoring_kinds(), _ALL),
        rule("apps", ["statefulsets"], _ALL),
        rule("", ["configmaps", "secrets"], _ALL),
        rule("", ["pods"], ["list", "delete"]),
        rule(
            "",
            ["services", "services/finalizers", "endpoints"],
            ["get", "create", "update", "delete"],
        ),
        rule("", ["nodes"], ["list", "watch"]),
        rule("", ["namespaces"], READ),
        {
            "apiGroups": ["", "events.k8s.io"],
            "resources": ["events"],
            "verbs": ["patch", "create"],
        },
        rule("networking.k8s.io", ["ingresses"], READ),
        rule("storage.k8s.io", ["storageclasses"], ["get"]),
    ]


def _monitoring_kinds() -> list[str]:
    running = ("prometheuses", "prometheusagents", "thanosrulers")
    return [
        *_with_subresources("alertmanagers"),
        "alertmanagerconfigs",
        *(kind for each in running for kind in _with_subresources(each)),
        "scrapeconfigs",
        "servicemonitors",
        "podmonitors",
        "probes",
        "prometheusrules",
    ]


def _with_subresources(kind: str) -> list[str]:
    return [kind, f"{kind}/finalizers", f"{kind}/status"]


def _prometheus_rules() -> list[JsonObject]:
    return [
        rule("", ["nodes", "services", "endpoints", "pods"], READ),
        rule("", ["nodes/metrics", "nodes/proxy"], ["get"]),
        {"nonResourceURLs": ["/metrics", "/metrics/*"], "verbs": ["get"]},
    ]


def _discovery() -> JsonObject:
    return rule("", ["services", "endpoints", "pods"], READ)


def _service() -> JsonObject:
    port = service_port("http", _PORT, "http")
    return service(NAME, NAMESPACE, _LABELS, port, labels=_LABELS, clusterIP="None")


PROMETHEUS_OPERATOR: Final = Component(
    name=NAME, deploy="Deploying prometheus-operator", render=render
)
