"""gardener-metrics-exporter: metrics about Projects, Seeds and Shoots (spec 20 §16.8)."""

from typing import Final

from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import JsonObject
from pergola.garden.components import monitoring, task_names
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.conventions import GARDEN_SCRAPES, open_ports
from pergola.garden.components.gardener_program import (
    Program,
    autoscaler,
    budget,
    deployment,
    gardener_labels,
)
from pergola.garden.components.priority_classes import P100
from pergola.garden.components.virtual_access import access_secret
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import READ, cluster_role, http_probe, port, requests, rule, service
from pergola.manifests.shoot_access import KUBECONFIG_PATH

NAME: Final = "gardener-metrics-exporter"
PORT: Final = 2718

_PROGRAM: Final = Program(
    name=NAME,
    labels=gardener_labels("metrics-exporter"),
    priority=P100,
    condition="ObservabilityComponentsHealthy",
)
_ROLE: Final = "gardener.cloud:metrics-exporter"
_CUSTOM: Final = (
    "addon_kubedashboard",
    "addon_nginxingress",
    "apiserver_auditpolicy",
    "apiserver_basicauth",
    "apiserver_featuregates",
    "apiserver_oidcconfig",
    "extensions",
    "kcm_horizontalpodautoscale",
    "kcm_nodecidrmasksize",
    "kubelet_podpidlimit",
    "network_customdomain",
    "proxy_mode",
    "worker_annotations",
    "worker_multiplepools",
    "worker_multizones",
    "worker_taints",
)
_METRICS: Final = (
    "garden_projects_status",
    "garden_seed_capacity",
    "garden_seed_condition",
    "garden_seed_info",
    "garden_seed_operation_states",
    "garden_seed_usage",
    "garden_shoot_condition",
    "garden_shoot_hibernated",
    "garden_shoot_info",
    "garden_shoot_node_info",
    "garden_shoot_node_max_total",
    "garden_shoot_node_min_total",
    "garden_shoot_operation_states",
    "garden_shoot_operations_total",
    "garden_shoot_response_duration_milliseconds",
    *(f"garden_shoots_custom_{setting}_total" for setting in _CUSTOM),
    "garden_shoots_hibernation_enabled_total",
    "garden_shoots_hibernation_schedule_total",
    "garden_users_total",
)


def render(landscape: Landscape) -> Rendered:
    """Return the workload, and its permissions in the virtual cluster."""
    runtime = _PROGRAM.runtime(
        deployment(_PROGRAM, landscape, _container(landscape)),
        budget(_PROGRAM),
        _service(),
        _service_monitor(),
        autoscaler(_PROGRAM),
    )
    role = cluster_role(_ROLE, _rules(), _PROGRAM.account(), labels=_PROGRAM.labels)
    return Rendered(managed=(runtime, _PROGRAM.virtual(*role)), direct=(access_secret(NAME),))


def _container(landscape: Landscape) -> JsonObject:
    return {
        "image": landscape.image(NAME),
        "command": [
            f"/{NAME}",
            f"--kubeconfig={KUBECONFIG_PATH}",
            "--bind-address=0.0.0.0",
            f"--port={PORT}",
        ],
        "ports": [port("port", PORT)],
        "startupProbe": http_probe("/", PORT, periodSeconds=5, failureThreshold=24),
        "livenessProbe": http_probe("/", PORT, periodSeconds=5),
        "readinessProbe": http_probe("/metrics", PORT, periodSeconds=15, timeoutSeconds=10),
        "resources": requests(cpu="100m", memory="128Mi"),
        "securityContext": {"readOnlyRootFilesystem": True},
    }


def _rules() -> list[JsonObject]:
    return [
        rule(GARDENER_CORE, ["secretbindings", "seeds", "shoots", "projects"], READ),
        rule("seedmanagement.gardener.cloud", ["managedseeds", "gardenlets"], READ),
        rule("security.gardener.cloud", ["credentialsbindings"], READ),
    ]


def _service() -> JsonObject:
    return service(
        NAME,
        NAMESPACE,
        _PROGRAM.labels,
        {"port": PORT, "protocol": "TCP", "targetPort": PORT},
        labels=_PROGRAM.labels,
        annotations=open_ports(GARDEN_SCRAPES, PORT),
    )


def _service_monitor() -> JsonObject:
    scraped = monitoring.endpoint(PORT, metrics=monitoring.kept_metrics(*_METRICS))
    return monitoring.service_monitor(monitoring.GARDEN, NAME, _PROGRAM.labels, scraped)


GARDENER_METRICS_EXPORTER: Final = Component(
    name=NAME,
    deploy="Deploying Gardener Metrics Exporter",
    after=(
        task_names.API_SERVER_READY,
        task_names.GARDENER_API_SERVER_READY,
    ),
    render=render,
    removable=_PROGRAM.removable(),
)
