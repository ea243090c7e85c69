"""victoria-operator: runs VictoriaLogs, the log store (spec 20 §16.8)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.observability.conventions import managed
from pergola.garden.components.observability.operators import Operator, operator_objects
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import (
    READ,
    RUNTIME_DEFAULT,
    disruption_budget,
    http_probe,
    requests,
    rule,
)
from pergola.manifests.labels import HIGH_AVAILABILITY

NAME: Final = "victoria-operator"

_LABELS: Final = {
    "app": NAME,
    "role": "observability",
    "gardener.cloud/role": "observability",
    HIGH_AVAILABILITY: "controller",
}
_ALL: Final = ("create", "watch", "list", "get", "delete", "patch", "update")
_HEALTH_PORT: Final = 8081
_METRICS_PORT: Final = 8080
_OTHER_KINDS: Final = (
    "VLAgent",
    "VLCluster",
    "VLogs",
    "VMAgent",
    "VMAlert",
    "VMAlertmanager",
    "VMAlertmanagerConfig",
    "VMAnomaly",
    "VMAuth",
    "VMCluster",
    "VMNodeScrape",
    "VMPodScrape",
    "VMProbe",
    "VMRule",
    "VMScrapeConfig",
    "VMServiceScrape",
    "VMSingle",
    "VMStaticScrape",
    "VMUser",
    "VTSingle",
    "VTCluster",
    "PodMonitor",
    "ServiceMonitor",
    "PrometheusRule",
    "Probe",
    "AlertmanagerConfig",
    "ScrapeConfig",
)
"""Kinds whose controllers are disabled: the runtime cluster does not serve them, or they belong to
prometheus-operator and would be converted."""


def render(landscape: Landscape) -> Rendered:
    """Return the operator."""
    objects = (
        *operator_objects(_operator(), landscape),
        disruption_budget(NAME, NAMESPACE, _LABELS),
    )
    return Rendered(managed=(managed(NAME, *objects),))


def _operator() -> Operator:
    return Operator(
        name=NAME,
        labels=_LABELS,
        rules=_rules(),
        container={
            "args": [
                "--leader-elect",
                f"--health-probe-bind-address=:{_HEALTH_PORT}",
                f"--metrics-bind-address=:{_METRICS_PORT}",
                f"--controller.disableReconcileFor={','.join(_OTHER_KINDS)}",
            ],
            "env": [
                {"name": "WATCH_NAMESPACE", "value": ""},
                {"name": "VM_DISABLESELFSERVICESCRAPECREATION", "value": "true"},
            ],
            "livenessProbe": _probe("/health", 15, 20),
            "readinessProbe": _probe("/ready", 5, 10),
            "resources": requests(cpu="80m", memory="120Mi"),
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "runAsNonRoot": True,
            },
        },
        pod={"securityContext": {"seccompProfile": RUNTIME_DEFAULT}},
        least_memory="64Mi",
    )


def _probe(path: str, delay: int, period: int) -> JsonObject:
    return http_probe(path, _HEALTH_PORT, initialDelaySeconds=delay, periodSeconds=period)


def _rules() -> list[JsonObject]:
    return [
        rule("", _finalized("persistentvolumeclaims", "services", "serviceaccounts"), _ALL),
        rule("apps", _finalized("deployments"), _ALL),
        rule("", ["configmaps/status", "pods"], READ),
        rule("", ["events"], ["create"]),
        rule(
            "operator.victoriametrics.com",
            [*_finalized("vlsingles"), "vlsingles/status"],
            _ALL,
        ),
        rule("coordination.k8s.io", ["leases"], ["get", "create", "update"]),
        rule("apiextensions.k8s.io", ["customresourcedefinitions"], READ),
    ]


def _finalized(*kinds: str) -> list[str]:
    return [name for kind in kinds for name in (kind, f"{kind}/finalizers")]


VICTORIA_OPERATOR: Final = Component(name=NAME, deploy="Deploying victoria-operator", render=render)
