"""The workload of terminal-controller-manager, and the component itself."""

from collections.abc import Iterator
from typing import Final

from pergola.api.dashboard_v1alpha1 import API_VERSION
from pergola.api.objects import JsonObject, name_of
from pergola.garden.components import authorities, monitoring
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.gardener_dashboard.settings import api_server_url
from pergola.garden.components.gardener_program import (
    autoscaler,
    budget,
    config_map,
    deployment,
    webhook_service,
)
from pergola.garden.components.terminal_controller_manager.registration import (
    NAME,
    PROGRAM,
    registration,
)
from pergola.garden.components.virtual_access import KUBECONFIG_PATH, access_secret
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.manifests import (
    KUBE_SYSTEM,
    config_map_volume,
    env,
    http_probe,
    mount,
    port,
    requests,
)

PORT: Final = 9443
METRICS_PORT: Final = 8443

_HEALTH_PORT: Final = 8081
_CERTIFICATE_VOLUME: Final = "server-cert"
# The default paths of the program's server certificates.
_CERTIFICATE_PATHS: Final = (
    "/tmp/k8s-webhook-server/serving-certs",  # noqa: S108 - in the container
    "/tmp/k8s-metrics-server/serving-certs",  # noqa: S108 - in the container
)
_CONFIG_PATH: Final = f"/etc/{NAME}"
_CONFIG_KEY: Final = "config.yaml"
_PROJECT_ACCOUNT: Final = "dashboard-webterminal"
"""The ServiceAccount that the dashboard uses in the namespace of a Project."""


def absent(landscape: Landscape) -> str | None:
    """Return why the Garden has no terminals, or None if it has them."""
    dashboard = landscape.virtual.gardener.dashboard
    if dashboard is None or dashboard.terminal is None:
        return "spec.virtualCluster.gardener.gardenerDashboard.terminal is not set"
    return None


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield the certificate of its webhooks and metrics."""
    del landscape
    yield authorities.runtime_server(NAME, *authorities.service_hosts(NAME, NAMESPACE))


def render(landscape: Landscape) -> Rendered:
    """Return the workload, its permissions, its API and its webhooks."""
    config = config_map(PROGRAM, NAME, _CONFIG_KEY, configuration(landscape))
    runtime = PROGRAM.runtime(
        config,
        _deployment(landscape, name_of(config)),
        budget(PROGRAM),
        webhook_service(PROGRAM, landscape, "webhook", PORT, METRICS_PORT),
        _service_monitor(),
        autoscaler(PROGRAM, cpu="10m", memory="32Mi"),
    )
    virtual = PROGRAM.virtual(*registration(landscape))
    return Rendered(managed=(runtime, virtual), direct=(access_secret(NAME),))


def configuration(landscape: Landscape) -> JsonObject:
    """Return its configuration file.

    Terminals may name only the API server that the dashboard presents: otherwise users could have
    credentials sent to a server of their own.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": "ControllerManagerConfiguration",
        "allowedAPIServerURLs": [api_server_url(landscape)],
        "controllers": {"serviceAccount": {"allowedServiceAccountNames": [_PROJECT_ACCOUNT]}},
        "honourCleanupProjectMembership": True,
        "honourServiceAccountRefHostCluster": False,
        "leaderElection": {"leaderElect": True, "resourceNamespace": KUBE_SYSTEM},
        "server": {"healthProbes": {"port": _HEALTH_PORT}, "metrics": {"port": METRICS_PORT}},
    }


def _deployment(landscape: Landscape, config: str) -> JsonObject:
    certificate = {"secretName": landscape.credentials.name(NAME)}
    volumes = [
        config_map_volume("config", config),
        {"name": _CERTIFICATE_VOLUME, "secret": certificate},
    ]
    pod = {"terminationGracePeriodSeconds": 10}
    return deployment(PROGRAM, landscape, _container(landscape), volumes, pod=pod)


def _container(landscape: Landscape) -> JsonObject:
    certificates = [mount(_CERTIFICATE_VOLUME, path, readOnly=True) for path in _CERTIFICATE_PATHS]
    return {
        "image": landscape.image(NAME),
        "args": [f"--config-file={_CONFIG_PATH}/{_CONFIG_KEY}", "--zap-devel=false"],
        "env": env(KUBECONFIG=KUBECONFIG_PATH),
        "ports": [port("webhook", PORT), port("metrics", METRICS_PORT)],
        "livenessProbe": _probe("/healthz", delay=15, period=20),
        "readinessProbe": _probe("/readyz", delay=5, period=10),
        "resources": requests(cpu="10m", memory="50Mi"),
        "volumeMounts": [mount("config", _CONFIG_PATH, readOnly=True), *certificates],
    }


def _probe(path: str, delay: int, period: int) -> JsonObject:
    return http_probe(
        path,
        _HEALTH_PORT,
        initialDelaySeconds=delay,
        periodSeconds=period,
        timeoutSeconds=5,
        successThreshold=1,
        failureThreshold=6,
    )


def _service_monitor() -> JsonObject:
    scraped = monitoring.endpoint("metrics", metrics=[monitoring.drop_labels("url")])
    return monitoring.service_monitor(
        monitoring.GARDEN, NAME, PROGRAM.labels, monitoring.authenticated(scraped)
    )


TERMINAL_CONTROLLER_MANAGER: Final = Component(
    name=NAME,
    deploy="Reconciling Gardener Dashboard web terminal controller manager",
    after=("Waiting until Gardener API server rolled out",),
    absent=absent,
    credentials=credentials,
    render=render,
    removable=PROGRAM.removable(),
)
