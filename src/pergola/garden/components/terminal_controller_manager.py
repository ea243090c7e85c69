"""terminal-controller-manager: terminals in the dashboard (spec 20 §16.6)."""

import base64
from collections.abc import Iterator
from typing import Final

from pergola.api.dashboard_v1alpha1 import API_VERSION, terminal_crd
from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import JsonObject, JsonValue, name_of
from pergola.garden.components import authorities, monitoring, task_names
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.conventions import (
    TO_PRIVATE_NETWORKS,
    TO_PUBLIC_NETWORKS,
    TO_RUNTIME_API_SERVER,
)
from pergola.garden.components.gardener_dashboard.settings import api_server_url
from pergola.garden.components.gardener_program import (
    SERVER,
    Program,
    autoscaler,
    budget,
    config_map,
    deployment,
    webhook_service,
)
from pergola.garden.components.priority_classes import P200
from pergola.garden.components.virtual_access import access_secret
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.manifests import (
    KUBE_SYSTEM,
    READ,
    cluster_role,
    config_map_volume,
    env,
    http_probe,
    manifest,
    mount,
    port,
    requests,
    role,
    rule,
)
from pergola.manifests.shoot_access import KUBECONFIG_PATH

NAME: Final = "terminal-controller-manager"
PROGRAM: Final = Program(
    name=NAME,
    labels={"app": NAME},
    priority=P200,
    kind=SERVER,
    managed="terminal",
    to={**TO_PUBLIC_NETWORKS, **TO_PRIVATE_NETWORKS, **TO_RUNTIME_API_SERVER},
)

_ROLE: Final = f"gardener.cloud:system:{NAME}"
_GROUP: Final = "dashboard.gardener.cloud"
_EDIT: Final = (*READ, "patch", "update")


def registration(landscape: Landscape) -> tuple[JsonObject, ...]:
    """Return the objects of the virtual cluster."""
    return (terminal_crd(), *_permissions(), *_webhooks(landscape))


def _permissions() -> list[JsonObject]:
    own = [
        rule(group, [resource], [*READ, "create", "update", "patch", "delete"])
        for group, resource in (("", "configmaps"), ("coordination.k8s.io", "leases"))
    ]
    account, labels = PROGRAM.account(), PROGRAM.labels
    return [
        *cluster_role(_ROLE, _rules(), account, labels=labels),
        *role(_ROLE, KUBE_SYSTEM, own, account, labels=labels),
    ]


def _rules() -> list[JsonObject]:
    webhooks = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    return [
        rule("", ["events"], ["create", "patch"]),
        rule("", ["serviceaccounts"], _EDIT),
        rule("", ["serviceaccounts/token"], ["create"]),
        rule("admissionregistration.k8s.io", webhooks, ["list"]),
        rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
        rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
        rule(GARDENER_CORE, ["projects"], _EDIT),
        rule(GARDENER_CORE, ["shoots"], READ),
        rule(GARDENER_CORE, ["shoots/adminkubeconfig"], ["create"]),
        rule(_GROUP, ["terminals"], ["create", "delete", *_EDIT]),
        rule(_GROUP, ["terminals/status"], ["get", "patch", "update"]),
    ]


def _webhooks(landscape: Landscape) -> Iterator[JsonObject]:
    bundle = landscape.credentials.bundle(authorities.RUNTIME).data["bundle.crt"]
    authority = base64.b64encode(bundle).decode()
    common = {"app.kubernetes.io/name": "terminal"}
    for kind, prefix, path in (
        ("Mutating", "mutating", "mutate-terminal"),
        ("Validating", "validating", "validate-terminal"),
    ):
        yield manifest(
            "admissionregistration.k8s.io/v1",
            f"{kind}WebhookConfiguration",
            f"terminal-{prefix}-webhook-configuration",
            labels={
                **PROGRAM.labels,
                **common,
                "app.kubernetes.io/component": "admission-controller",
            },
            webhooks=[_webhook(f"{prefix}-create-update-terminal", path, authority)],
        )


def _webhook(name: str, path: str, authority: str) -> JsonObject:
    rules: list[JsonValue] = [
        {
            "apiGroups": [_GROUP],
            "apiVersions": ["v1alpha1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["terminals"],
        }
    ]
    return {
        "name": f"{name}.gardener.cloud",
        "clientConfig": {
            "url": f"https://{NAME}.{NAMESPACE}.svc/{path}",
            "caBundle": authority,
        },
        "rules": rules,
        "admissionReviewVersions": ["v1", "v1beta1"],
        "failurePolicy": "Fail",
        "sideEffects": "None",
    }


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
    after=(task_names.GARDENER_API_SERVER_READY,),
    absent=absent,
    credentials=credentials,
    render=render,
    removable=PROGRAM.removable(),
)
