"""gardener-controller-manager: the controllers of Gardener's own resources (spec 20 §16.4)."""

from typing import Final

from pergola.api.objects import JsonObject, name_of
from pergola.bundle import make_unique
from pergola.kube.yaml import dump
from pergola.manifests import (
    KUBE_SYSTEM,
    cluster_role,
    config_map_volume,
    http_probe,
    manifest,
    mount,
    requests,
    rule,
    service,
    service_port,
)
from pergola.operator.components import monitoring
from pergola.operator.components.component import Component, Rendered
from pergola.operator.components.conventions import GARDEN_SCRAPES, open_ports
from pergola.operator.components.gardener_program import (
    CLIENT_CONNECTION,
    CONTROLLER,
    METRICS,
    Program,
    autoscaler,
    budget,
    deployment,
    gardener_labels,
)
from pergola.operator.components.priority_classes import P200
from pergola.operator.components.virtual_access import KUBECONFIG_PATH, access_secret
from pergola.operator.garden.landscape import NAMESPACE, Landscape

NAME: Final = "gardener-controller-manager"
METRICS_PORT: Final = 2719

_PROGRAM: Final = Program(
    name=NAME, labels=gardener_labels("controller-manager"), priority=P200, kind=CONTROLLER
)
_HEALTH_PORT: Final = 2718
_ROLE: Final = "gardener.cloud:system:controller-manager"
_CONFIG: Final = f"{NAME}-config"
_CONFIG_PATH: Final = f"/etc/{NAME}/config"
_CONFIG_KEY: Final = "config.yaml"
_WORKERS: Final = {"concurrentSyncs": 20}
_EVENT_WORKERS: Final = {"concurrentSyncs": 10}


def render(landscape: Landscape) -> Rendered:
    """Return the workload, and its permissions in the virtual cluster."""
    config = make_unique(_config_map(landscape))
    runtime = _PROGRAM.runtime(
        config,
        deployment(
            _PROGRAM,
            landscape,
            _container(landscape),
            [config_map_volume(_CONFIG, name_of(config))],
        ),
        budget(_PROGRAM),
        _service(),
        _service_monitor(),
        autoscaler(_PROGRAM, memory="300Mi"),
    )
    everything = [rule("*", ["*"], ["*"])]
    role = cluster_role(_ROLE, everything, _PROGRAM.account(), labels=_PROGRAM.labels)
    return Rendered(managed=(runtime, _PROGRAM.virtual(*role)), direct=(access_secret(NAME),))


def _config_map(landscape: Landscape) -> JsonObject:
    return manifest(
        "v1",
        "ConfigMap",
        _CONFIG,
        namespace=NAMESPACE,
        labels=_PROGRAM.labels,
        data={_CONFIG_KEY: dump(configuration(landscape))},
    )


def configuration(landscape: Landscape) -> JsonObject:
    """Return its configuration file."""
    settings = landscape.virtual.gardener.controller_manager
    config: JsonObject = {
        "apiVersion": "controllermanager.config.gardener.cloud/v1alpha1",
        "kind": "ControllerManagerConfiguration",
        "gardenClientConnection": {"kubeconfig": KUBECONFIG_PATH, **CLIENT_CONNECTION},
        "leaderElection": {
            "leaderElect": True,
            "resourceName": f"{NAME}-leader-election",
            "resourceNamespace": KUBE_SYSTEM,
        },
        "logLevel": settings.log_level,
        "logFormat": "json",
        "server": {"healthProbes": {"port": _HEALTH_PORT}, "metrics": {"port": METRICS_PORT}},
        "controllers": {**_controllers(), "project": _projects(landscape)},
    }
    if settings.feature_gates:
        config["featureGates"] = dict(settings.feature_gates)
    return config


def _controllers() -> JsonObject:
    return {
        "controllerRegistration": _WORKERS,
        "credentialsBinding": _WORKERS,
        "secretBinding": _WORKERS,
        "event": {**_EVENT_WORKERS, "ttlNonShootEvents": "2h"},
        "seed": {**_WORKERS, "shootMonitorPeriod": "300s"},
        "seedBackupBucketsCheck": _thresholds("BackupBucketsReady"),
        "seedExtensionsCheck": _thresholds("ExtensionsReady"),
        "shootMaintenance": _WORKERS,
        "shootReference": _WORKERS,
    }


def _thresholds(condition: str) -> JsonObject:
    return {"conditionThresholds": [{"type": condition, "duration": "1m"}]}


def _projects(landscape: Landscape) -> JsonObject:
    quotas = landscape.virtual.gardener.controller_manager.default_project_quotas
    return {**_WORKERS, **({"quotas": [quota.to_json() for quota in quotas]} if quotas else {})}


def _container(landscape: Landscape) -> JsonObject:
    return {
        "image": landscape.gardener_image(NAME),
        "args": [f"--config={_CONFIG_PATH}/{_CONFIG_KEY}"],
        "livenessProbe": http_probe(
            "/healthz", _HEALTH_PORT, initialDelaySeconds=30, timeoutSeconds=5
        ),
        "readinessProbe": http_probe(
            "/readyz", _HEALTH_PORT, initialDelaySeconds=10, timeoutSeconds=5
        ),
        "resources": requests(cpu="1", memory="1Gi"),
        "volumeMounts": [mount(_CONFIG, _CONFIG_PATH)],
    }


def _service() -> JsonObject:
    return service(
        NAME,
        NAMESPACE,
        _PROGRAM.labels,
        service_port("metrics", METRICS_PORT),
        labels=_PROGRAM.labels,
        annotations=open_ports(GARDEN_SCRAPES, METRICS_PORT),
    )


def _service_monitor() -> JsonObject:
    scraped = monitoring.endpoint("metrics", metrics=monitoring.kept_metrics(*METRICS))
    return monitoring.service_monitor(monitoring.GARDEN, NAME, _PROGRAM.labels, scraped)


GARDENER_CONTROLLER_MANAGER: Final = Component(
    name=NAME,
    deploy="Deploying Gardener Controller Manager",
    after=("Waiting until Gardener API server rolled out",),
    render=render,
    removable=_PROGRAM.removable(),
)
