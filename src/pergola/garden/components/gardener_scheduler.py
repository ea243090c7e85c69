"""gardener-scheduler: assigns a Seed to each Shoot (spec 20 §16.5)."""

from typing import Final

from pergola.api.kinds import GARDENER_CORE
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
    READ,
    cluster_role,
    config_map_volume,
    mount,
    requests,
    rule,
)
from pergola.manifests.shoot_access import KUBECONFIG_PATH

NAME: Final = "gardener-scheduler"
METRICS_PORT: Final = 19251

_PROGRAM: Final = Program(
    name=NAME, labels=gardener_labels("scheduler"), priority=P200, kind=CONTROLLER
)
_HEALTH_PORT: Final = 10251
_ROLE: Final = "gardener.cloud:system:scheduler"
_LEASE: Final = f"{NAME}-leader-election"
_CONFIG: Final = f"{NAME}-config"
_CONFIG_PATH: Final = f"/etc/{NAME}/config"
_CONFIG_KEY: Final = "schedulerconfiguration.yaml"


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
        autoscaler(_PROGRAM, memory="25Mi"),
    )
    role = cluster_role(_ROLE, _rules(), _PROGRAM.account(), labels=_PROGRAM.labels)
    return Rendered(managed=(runtime, _PROGRAM.virtual(*role)), direct=(access_secret(NAME),))


def configuration(landscape: Landscape) -> JsonObject:
    """Return its configuration file."""
    settings = landscape.virtual.gardener.scheduler
    config: JsonObject = {
        "apiVersion": "scheduler.config.gardener.cloud/v1alpha1",
        "kind": "SchedulerConfiguration",
        "clientConnection": {"kubeconfig": KUBECONFIG_PATH, **CLIENT_CONNECTION},
        "leaderElection": {
            "leaderElect": True,
            "resourceName": _LEASE,
            "resourceNamespace": KUBE_SYSTEM,
        },
        "logLevel": settings.log_level,
        "logFormat": "json",
        "server": {"healthProbes": {"port": _HEALTH_PORT}, "metrics": {"port": METRICS_PORT}},
        "schedulers": {"shoot": {"candidateDeterminationStrategy": settings.strategy}},
    }
    if settings.feature_gates:
        config["featureGates"] = dict(settings.feature_gates)
    return config


def _container(landscape: Landscape) -> JsonObject:
    return {
        "image": landscape.gardener_image(NAME),
        "args": [f"--config={_CONFIG_PATH}/{_CONFIG_KEY}"],
        **probes(_HEALTH_PORT, delay=15),
        "resources": requests(cpu="50m", memory="50Mi"),
        "volumeMounts": [mount(_CONFIG, _CONFIG_PATH)],
    }


def _rules() -> list[JsonObject]:
    events = {**rule("", ["events"], ["create", "patch", "update"])}
    return [
        {**events, "apiGroups": ["", "events.k8s.io"]},
        rule("", ["configmaps"], ["create", "delete", *READ, "patch", "update"]),
        rule(
            GARDENER_CORE, ["cloudprofiles", "namespacedcloudprofiles", "projects", "seeds"], READ
        ),
        rule(GARDENER_CORE, ["shoots", "shoots/status"], [*READ, "patch", "update"]),
        rule(GARDENER_CORE, ["shoots/binding"], ["update"]),
        rule("coordination.k8s.io", ["leases"], ["create"]),
        rule("coordination.k8s.io", ["leases"], ["get", "watch", "update"], [_LEASE]),
    ]


GARDENER_SCHEDULER: Final = Component(
    name=NAME,
    deploy="Deploying Gardener Scheduler",
    after=(task_names.GARDENER_API_SERVER_READY,),
    render=render,
    removable=_PROGRAM.removable(),
)
