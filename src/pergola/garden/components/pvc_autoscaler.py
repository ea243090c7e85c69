"""pvc-autoscaler: enlarges volumes before they are full (spec 20 §5.2, §16.8)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components import monitoring, volume_autoscaling
from pergola.garden.components.component import Component, Managed, Rendered
from pergola.garden.components.conventions import (
    GARDEN_SCRAPES,
    TO_DNS,
    TO_RUNTIME_API_SERVER,
    open_ports,
    to_service,
)
from pergola.garden.components.observability.prometheus_garden.component import PROMETHEUS_GARDEN
from pergola.garden.components.priority_classes import P100
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import (
    READ,
    account,
    cluster_role,
    disruption_budget,
    env,
    http_probe,
    manifest,
    non_root,
    port,
    requests,
    restricted,
    role,
    rule,
    selector,
    service,
    service_account,
    service_port,
    target_reference,
    vertical_pod_autoscaler,
)
from pergola.manifests.labels import HIGH_AVAILABILITY

NAME: Final = "pvc-autoscaler-garden"
"""Of all its objects; a Seed in the same cluster has its own autoscaler."""

_PROGRAM: Final = "pvc-autoscaler"
_ROLE: Final = f"gardener.cloud:autoscaling:{NAME}"
_LABELS: Final = {"app": NAME}
_KIND: Final = "persistentvolumeclaimautoscalers"
_WRITE: Final = (*READ, "create", "update", "patch", "delete")
_METRICS_PORT: Final = 8080
_HEALTH_PORT: Final = 8081
_USER: Final = 65532
_PROMETHEUS: Final = "prometheus-garden"
"""The Prometheus with metrics of the garden's volumes."""
_PROMETHEUS_PORT: Final = 9090


def render(landscape: Landscape) -> Rendered:
    """Return the autoscaler and its permissions."""
    target = target_reference("Deployment", NAME)
    least = {"memory": "64Mi"}
    objects = (
        service_account(NAME, NAMESPACE, _LABELS),
        *cluster_role(_ROLE, _rules(), account(NAME, NAMESPACE), labels=_LABELS),
        *role(_ROLE, NAMESPACE, _own_rules(), account(NAME, NAMESPACE), labels=_LABELS),
        _service(),
        _deployment(landscape),
        disruption_budget(NAME, NAMESPACE, _LABELS),
        vertical_pod_autoscaler(NAME, NAMESPACE, target, _PROGRAM, least, labels=_LABELS),
        _service_monitor(),
    )
    return Rendered(managed=(Managed(name=NAME, objects=objects),))


def _rules() -> list[JsonObject]:
    return [
        rule("*", ["*/scale"], READ),
        rule("", ["events"], ["create", "patch"]),
        rule("", ["persistentvolumeclaims"], [*READ, "update", "patch"]),
        rule("", ["persistentvolumeclaims/status"], ["get"]),
        rule("", ["pods"], READ),
        rule(volume_autoscaling.GROUP, [_KIND], _WRITE),
        rule(volume_autoscaling.GROUP, [f"{_KIND}/finalizers"], ["update"]),
        rule(volume_autoscaling.GROUP, [f"{_KIND}/status"], ["get", "update", "patch"]),
        rule("storage.k8s.io", ["storageclasses"], READ),
    ]


def _own_rules() -> list[JsonObject]:
    return [
        rule("coordination.k8s.io", ["leases"], _WRITE),
        rule("", ["events"], ["create", "patch"]),
    ]


def _service() -> JsonObject:
    return service(
        NAME,
        NAMESPACE,
        _LABELS,
        service_port("metrics", _METRICS_PORT, "metrics"),
        labels=_LABELS,
        annotations=open_ports(GARDEN_SCRAPES, _METRICS_PORT),
    )


def _deployment(landscape: Landscape) -> JsonObject:
    labels = {
        **_LABELS,
        **TO_DNS,
        **TO_RUNTIME_API_SERVER,
        **to_service(_PROMETHEUS, _PROMETHEUS_PORT),
    }
    return manifest(
        "apps/v1",
        "Deployment",
        NAME,
        namespace=NAMESPACE,
        labels={**_LABELS, HIGH_AVAILABILITY: "controller"},
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 2,
            "selector": selector(_LABELS),
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "priorityClassName": P100,
                    "serviceAccountName": NAME,
                    "securityContext": non_root(_USER, fs_group=True),
                    "containers": [_container(landscape)],
                },
            },
        },
    )


def _container(landscape: Landscape) -> JsonObject:
    return {
        "name": _PROGRAM,
        "image": landscape.image(_PROGRAM),
        "imagePullPolicy": "IfNotPresent",
        "args": [
            f"--health-probe-bind-address=:{_HEALTH_PORT}",
            f"--metrics-bind-address=:{_METRICS_PORT}",
            "--leader-elect",
            f"--leader-election-id={NAME}",
            f"--autoscaler-name={volume_autoscaling.AUTOSCALER}",
            "--interval=60s",
            f"--prometheus-address=http://{_PROMETHEUS}.{NAMESPACE}.svc.cluster.local:80",
        ],
        "env": env(ENABLE_WEBHOOKS="false"),
        "ports": [port("health", _HEALTH_PORT), port("metrics", _METRICS_PORT)],
        "livenessProbe": http_probe(
            "/healthz", "health", initialDelaySeconds=15, periodSeconds=20, failureThreshold=3
        ),
        "readinessProbe": http_probe(
            "/readyz", "health", initialDelaySeconds=5, periodSeconds=10, failureThreshold=3
        ),
        "resources": requests(cpu="10m", memory="64Mi"),
        "securityContext": restricted(),
    }


def _service_monitor() -> JsonObject:
    targets = [
        monitoring.keep("metrics", "__meta_kubernetes_pod_container_port_name"),
        monitoring.POD_LABELS,
    ]
    endpoint = monitoring.endpoint("metrics", targets=targets)
    return monitoring.service_monitor(monitoring.GARDEN, NAME, _LABELS, endpoint)


PVC_AUTOSCALER: Final = Component(
    name=NAME,
    deploy="Deploying pvc-autoscaler",
    after=(PROMETHEUS_GARDEN.ready,),
    absent=volume_autoscaling.absent,
    render=render,
    limit=120.0,
)
