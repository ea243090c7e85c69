"""blackbox-exporter: probes the endpoints of the garden as users reach them (spec 20 §16.8)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pergola.api.objects import JsonObject, name_of
from pergola.bundle import make_unique
from pergola.garden.components import authorities, task_names
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.conventions import (
    GARDEN_SCRAPES,
    TO_DNS,
    TO_PRIVATE_NETWORKS,
    TO_PUBLIC_NETWORKS,
    open_ports,
    to_service,
)
from pergola.garden.components.gardener_dashboard.settings import hosts as dashboard_hosts
from pergola.garden.components.monitoring import (
    ACCESS,
    GARDEN,
    job,
    kept_metrics,
    replace,
    scrape_config,
    static,
)
from pergola.garden.components.observability.conventions import managed
from pergola.garden.components.priority_classes import P100
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.yaml import dump
from pergola.manifests import (
    RUNTIME_DEFAULT,
    config_map_volume,
    disruption_budget,
    manifest,
    mount,
    port,
    projected,
    requests,
    secret_files,
    selector,
    service,
    service_account,
    target_reference,
    vertical_pod_autoscaler,
)
from pergola.manifests.labels import HIGH_AVAILABILITY

NAME: Final = "blackbox-exporter"
PORT: Final = 9115
BUNDLE: Final = "bundle.crt"
"""The name of the file with the certificates of an authority."""

_SECRETS: Final = "/var/run/secrets/blackbox_exporter"
ACCESS_PATH: Final = f"{_SECRETS}/cluster-access"
"""The exporter's directory with the token for the virtual cluster, and its authority."""
CA_PATH: Final = f"{_SECRETS}/gardener-ca"
"""The exporter's directory with the authority of Gardener's servers."""

_METRICS: Final = ("probe_success", "probe_http_status_code", "probe_http_duration_seconds")
_ANYTHING: Final = {"regex": "(.*)", "separator": ";"}


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe of one or more endpoints.

    Attributes:
        name: The suffix of the names of its job and its ScrapeConfig.
        module: The module of the exporter that runs it.
        targets: The URLs to probe.
    """

    name: str
    module: str
    targets: tuple[str, ...]


def probes(landscape: Landscape) -> Iterator[Probe]:
    """Yield all probes of a Garden."""
    yield Probe("apiserver", "http_kube_apiserver", tuple(_api_servers(landscape)))
    gardener = f"https://gardener-apiserver.{NAMESPACE}.svc/healthz"
    yield Probe("gardener-apiserver", "http_gardener_apiserver", (gardener,))
    dashboard = f"https://{dashboard_hosts(landscape)[0]}/healthz"
    yield Probe("dashboard", "http_gardener_dashboard", (dashboard,))
    if landscape.virtual.gardener.discovery_server is not None:
        discovery = f"http://gardener-discovery-server.{NAMESPACE}.svc.cluster.local:8081/healthz"
        yield Probe("discovery-server", "http_gardener_discovery_server", (discovery,))


def _api_servers(landscape: Landscape) -> Iterator[str]:
    yield f"https://gardener.{landscape.domains[0]}/healthz"
    sni = landscape.api_server.sni
    for pattern in sni.domain_patterns if sni else ():
        if "*" not in pattern:
            yield f"https://{pattern}/healthz"


def modules(landscape: Landscape) -> JsonObject:
    """Return the modules for the exporter's configuration file, by name.

    Gardener signs the certificate of the dashboard, unless there is a wildcard certificate.
    """
    gardener_ca = {"tls_config": {"ca_file": f"{CA_PATH}/{BUNDLE}"}}
    cluster_ca = {"tls_config": {"ca_file": f"{ACCESS_PATH}/{BUNDLE}"}}
    token = {"bearer_token_file": f"{ACCESS_PATH}/token"}
    found = {
        "http_gardener_apiserver": _module(gardener_ca),
        "http_kube_apiserver": _module({**cluster_ca, **token}),
        "http_kube_apiserver_root_cas": _module(token),
        "http_gardener_dashboard": _module({} if landscape.wildcard_certificate else gardener_ca),
    }
    if landscape.virtual.gardener.discovery_server is not None:
        found["http_gardener_discovery_server"] = _module({})
    return found


def _module(client: JsonObject) -> JsonObject:
    http = {
        "headers": {"Accept": "*/*", "Accept-Language": "en-US"},
        "preferred_ip_protocol": "ipv4",
        "enable_http2": False,
        "follow_redirects": False,
        **client,
    }
    return {"prober": "http", "timeout": "10s", "http": http}


def scrape(probe: Probe) -> JsonObject:
    """Return the ScrapeConfig that makes the exporter probe each target."""
    name = f"blackbox-{probe.name}"
    by_address = replace("__param_target", "$1", "__address__") | _ANYTHING
    by_target = replace("instance", "$1", "__param_target") | _ANYTHING
    through = replace("__address__", f"{NAME}:{PORT}") | _ANYTHING
    return scrape_config(
        GARDEN,
        name,
        {
            "metricsPath": "/probe",
            "params": {"module": [probe.module]},
            "staticConfigs": static(*probe.targets, purpose="availability"),
            "relabelings": [*_publicly_signed(probe), by_address, by_target, through, job(name)],
            "metricRelabelings": kept_metrics(*_METRICS),
        },
    )


def _publicly_signed(probe: Probe) -> Iterator[JsonObject]:
    """Yield the relabeling that verifies public names of API servers with public authorities."""
    if probe.name == "apiserver":
        module = "http_kube_apiserver_root_cas"
        step = replace("__param_module", module, "__address__", regex=r"https://api\..*")
        yield step | {"separator": ";"}


_LABELS: Final = {"app": NAME, "gardener.cloud/role": "monitoring"}
_PODS: Final = {"app": NAME}
_ORIGIN: Final = {"origin": "gardener"}
_POD_LABELS: Final = {
    **_LABELS,
    **_ORIGIN,
    **TO_DNS,
    **TO_PUBLIC_NETWORKS,
    **TO_PRIVATE_NETWORKS,
    **to_service("gardener-apiserver", 8443),
    **to_service("gardener-discovery-server", 8081),
    **to_service("all-istio-ingresses-istio-ingressgateway", 9443),
}
_CONFIG_VOLUME: Final = "blackbox-exporter-config"
_CONFIG_PATH: Final = "/etc/blackbox_exporter"
_FILE: Final = "blackbox.yaml"
_ACCESS_VOLUME: Final = "cluster-access"
_CA_VOLUME: Final = "gardener-ca"
_READABLE: Final = 0o644
_USER: Final = 65534


def render(landscape: Landscape) -> Rendered:
    """Return the exporter, and the scrapes through which Prometheus runs its probes."""
    config = make_unique(_config_map(landscape))
    objects = (
        service_account(NAME, NAMESPACE, {**_LABELS, **_ORIGIN}),
        config,
        _deployment(landscape, name_of(config)),
        _service(),
        disruption_budget(NAME, NAMESPACE, _PODS, _LABELS),
        _autoscaler(),
        *(scrape(probe) for probe in probes(landscape)),
    )
    return Rendered(managed=(managed(NAME, *objects),))


def _config_map(landscape: Landscape) -> JsonObject:
    return manifest(
        "v1",
        "ConfigMap",
        _CONFIG_VOLUME,
        namespace=NAMESPACE,
        labels={"app": "prometheus", "role": "monitoring"},
        data={_FILE: dump({"modules": modules(landscape)})},
    )


def _deployment(landscape: Landscape, config: str) -> JsonObject:
    return manifest(
        "apps/v1",
        "Deployment",
        NAME,
        namespace=NAMESPACE,
        labels={**_LABELS, **_ORIGIN, HIGH_AVAILABILITY: "server"},
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 2,
            "selector": selector(_PODS),
            "template": {"metadata": {"labels": _POD_LABELS}, "spec": _pod(landscape, config)},
        },
    )


def _pod(landscape: Landscape, config: str) -> JsonObject:
    return {
        "priorityClassName": P100,
        "serviceAccountName": NAME,
        "dnsConfig": {"options": [{"name": "ndots", "value": "3"}]},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "fsGroup": _USER,
            "supplementalGroups": [1],
            "seccompProfile": RUNTIME_DEFAULT,
        },
        "containers": [_container(landscape)],
        "volumes": _volumes(landscape, config),
    }


def _container(landscape: Landscape) -> JsonObject:
    return {
        "name": NAME,
        "image": landscape.image(NAME),
        "imagePullPolicy": "IfNotPresent",
        "args": [f"--config.file={_CONFIG_PATH}/{_FILE}", "--log.level=debug"],
        "ports": [port("probe", PORT)],
        "resources": requests(memory="15M"),
        "securityContext": {"allowPrivilegeEscalation": False},
        "volumeMounts": [
            mount(_CONFIG_VOLUME, _CONFIG_PATH),
            mount(_ACCESS_VOLUME, ACCESS_PATH),
            mount(_CA_VOLUME, CA_PATH),
        ],
    }


def _volumes(landscape: Landscape, config: str) -> list[JsonObject]:
    cluster = landscape.credentials.bundle_name(authorities.CLUSTER)
    gardener = landscape.credentials.bundle_name(authorities.GARDENER)
    return [
        config_map_volume(_CONFIG_VOLUME, config),
        projected(
            _ACCESS_VOLUME,
            secret_files(cluster, {BUNDLE: BUNDLE}),
            secret_files(ACCESS, {"token": "token"}),
            mode=_READABLE,
        ),
        {"name": _CA_VOLUME, "secret": {"secretName": gardener}},
    ]


def _service() -> JsonObject:
    opened = open_ports(GARDEN_SCRAPES, PORT)
    probe: JsonObject = {"name": "probe", "port": PORT, "protocol": "TCP"}
    return service(NAME, NAMESPACE, _PODS, probe, labels=_PODS, annotations=opened)


def _autoscaler() -> JsonObject:
    target = target_reference("Deployment", NAME)
    return vertical_pod_autoscaler(NAME, NAMESPACE, target, NAME, resources=["memory"])


BLACKBOX_EXPORTER: Final = Component(
    name=NAME,
    deploy="Deploying blackbox-exporter",
    after=(task_names.API_SERVER_READY, task_names.GARDEN_PROMETHEUS),
    render=render,
)
