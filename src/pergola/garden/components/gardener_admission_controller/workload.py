"""The workload of gardener-admission-controller, and its permissions in the virtual cluster."""

from collections.abc import Iterator
from typing import Final

from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import JsonObject, name_of
from pergola.garden.components import authorities
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.gardener_admission_controller.webhooks import NAME, webhooks
from pergola.garden.components.gardener_program import (
    CLIENT_CONNECTION,
    SERVER,
    Program,
    autoscaler,
    budget,
    config_map,
    deployment,
    gardener_labels,
    probes,
    service_monitor,
    webhook_service,
)
from pergola.garden.components.priority_classes import P400
from pergola.garden.components.virtual_access import KUBECONFIG_PATH, access_secret
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.manifests import (
    READ,
    cluster_role,
    config_map_volume,
    mount,
    requests,
    rule,
)
from pergola.secrets_manager import Use

PORT: Final = 2719
METRICS_PORT: Final = 2723

_PROGRAM: Final = Program(
    name=NAME, labels=gardener_labels("admission-controller"), priority=P400, kind=SERVER
)
_HEALTH_PORT: Final = 2722
_CERTIFICATE: Final = f"{NAME}-cert"
_CERTIFICATE_PATH: Final = f"/etc/{NAME}/srv"
_CONFIG_VOLUME: Final = f"{NAME}-config"
_CONFIG_PATH: Final = f"/etc/{NAME}/config"
_CONFIG_KEY: Final = "config.yaml"
_ROLE: Final = "gardener.cloud:system:admission-controller"
_BINDING: Final = "gardener.cloud:admission-controller"
_METRICS: Final = (
    "gardener_admission_controller_.+",
    "rest_client_.+",
    "controller_runtime_.+",
    "go_.+",
)


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield its certificate, signed by the current authority; the API server trusts it already."""
    del landscape
    hosts = authorities.service_hosts(NAME, NAMESPACE)
    yield authorities.gardener_server(_CERTIFICATE, *hosts, use=Use.CURRENT)


def render(landscape: Landscape) -> Rendered:
    """Return the workload, its permissions and its webhooks."""
    config = config_map(_PROGRAM, NAME, _CONFIG_KEY, configuration(landscape))
    runtime = _PROGRAM.runtime(
        config,
        deployment(
            _PROGRAM, landscape, _container(landscape), _volumes(landscape, name_of(config))
        ),
        budget(_PROGRAM),
        webhook_service(_PROGRAM, landscape, "https", PORT, METRICS_PORT),
        service_monitor(_PROGRAM, *_METRICS),
        autoscaler(_PROGRAM, memory="25Mi"),
    )
    virtual = _PROGRAM.virtual(*_permissions(), *webhooks(landscape))
    return Rendered(managed=(runtime, virtual), direct=(access_secret(NAME),))


def configuration(landscape: Landscape) -> JsonObject:
    """Return its configuration file."""
    settings = landscape.virtual.gardener.admission_controller
    server: JsonObject = {
        "webhooks": {"port": PORT, "tls": {"serverCertDir": _CERTIFICATE_PATH}},
        "healthProbes": {"port": _HEALTH_PORT},
        "metrics": {"port": METRICS_PORT},
    }
    if settings.resource_admission_configuration is not None:
        limits = settings.resource_admission_configuration.to_json()
        server["resourceAdmissionConfiguration"] = limits
    return {
        "apiVersion": "admissioncontroller.config.gardener.cloud/v1alpha1",
        "kind": "AdmissionControllerConfiguration",
        "gardenClientConnection": {"kubeconfig": KUBECONFIG_PATH, **CLIENT_CONNECTION},
        "logLevel": settings.log_level,
        "logFormat": "json",
        "server": server,
    }


def _container(landscape: Landscape) -> JsonObject:
    return {
        "image": landscape.gardener_image(NAME),
        "args": [f"--config={_CONFIG_PATH}/{_CONFIG_KEY}"],
        **probes(_HEALTH_PORT, delay=15),
        "resources": requests(cpu="100m", memory="200Mi"),
        "volumeMounts": [
            mount(_CERTIFICATE, _CERTIFICATE_PATH, readOnly=True),
            mount(_CONFIG_VOLUME, _CONFIG_PATH),
        ],
    }


def _volumes(landscape: Landscape, config: str) -> list[JsonObject]:
    certificate = {"secretName": landscape.credentials.name(_CERTIFICATE), "defaultMode": 0o640}
    return [
        {"name": _CERTIFICATE, "secret": certificate},
        config_map_volume(_CONFIG_VOLUME, config),
    ]


def _permissions() -> list[JsonObject]:
    role, binding = cluster_role(_ROLE, _rules(), _PROGRAM.account(), labels=_PROGRAM.labels)
    metadata = {**binding["metadata"], "name": _BINDING}
    return [role, {**binding, "metadata": metadata}]


def _rules() -> list[JsonObject]:
    core = (
        "backupbuckets",
        "backupentries",
        "controllerdeployments",
        "controllerinstallations",
        "internalsecrets",
        "secretbindings",
        "seeds",
        "shoots",
        "shootstates",
        "projects",
    )
    return [
        rule(GARDENER_CORE, core, READ),
        rule("seedmanagement.gardener.cloud", ["gardenlets", "managedseeds"], READ),
        rule("operations.gardener.cloud", ["bastions"], READ),
        rule("", ["configmaps", "namespaces", "secrets", "serviceaccounts"], READ),
        rule("coordination.k8s.io", ["leases"], READ),
        rule("certificates.k8s.io", ["certificatesigningrequests"], READ),
        rule("security.gardener.cloud", ["credentialsbindings"], READ),
        rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
    ]


GARDENER_ADMISSION_CONTROLLER: Final = Component(
    name=NAME,
    deploy="Deploying Gardener Admission Controller",
    after=("Waiting until Gardener API server rolled out",),
    credentials=credentials,
    render=render,
    removable=_PROGRAM.removable(),
)
