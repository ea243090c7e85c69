"""gardener-controller-manager: the controllers of Gardener's own resources (spec 20 §16.4)."""

from typing import Final

from pergola.api.objects import JsonObject, name_of
from pergola.garden.components import task_names
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.gardener_program import (
    CLIENT_CONNECTION,
    CONTROLLER,
    METRICS,
    Program,
    autoscaler,
    budget,
    config_map,
    deployment,
    gardener_labels,
    metrics_service,
    probes,
    service_monitor,
)
from pergola.garden.components.priority_classes import P200
from pergola.garden.components.virtual_access import access_secret
from pergola.garden.landscape import Landscape
from pergola.manifests import (
    KUBE_SYSTEM,
    cluster_role,
    config_map_volume,
    mount,
    requests,
    rule,
)
from pergola.manifests.shoot_access import KUBECONFIG_PATH

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
    config = config_map(_PROGRAM, _CONFIG, _CONFIG_KEY, configuration(landscape))
    runtime = _PROGRAM.runtime(
        config,
        deployment(
            _PROGRAM,
            landscape,
            _container(landscape),
            [config_map_volume(_CONFIG, name_of(config))],
        ),
        budget(_PROGRAM),
        metrics_service(_PROGRAM, METRICS_PORT),
        service_monitor(_PROGRAM, *METRICS),
        autoscaler(_PROGRAM, memory="300Mi"),
    )
    everything = [rule("*", ["*"], ["*"])]
    role = cluster_role(_ROLE, everything, _PROGRAM.account(), labels=_PROGRAM.labels)
    return Rendered(managed=(runtime, _PROGRAM.virtual(*role)), direct=(access_secret(NAME),))


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
        "seed": {**_WORKERS, "shootMonitorPeriod": "5m"},
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
        **probes(_HEALTH_PORT, delay=30),
        "resources": requests(cpu="1", memory="1Gi"),
        "volumeMounts": [mount(_CONFIG, _CONFIG_PATH)],
    }


GARDENER_CONTROLLER_MANAGER: Final = Component(
    name=NAME,
    deploy="Deploying Gardener Controller Manager",
    after=(task_names.GARDENER_API_SERVER_READY,),
    render=render,
    removable=_PROGRAM.removable(),
)
