"""The probes of the garden: their targets, their modules and how Prometheus runs them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.monitoring import (
    GARDEN,
    job,
    kept_metrics,
    replace,
    scrape_config,
    static,
)
from pergola.garden.components.observability.conventions import host
from pergola.garden.landscape import NAMESPACE, Landscape

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
    dashboard = f"https://{host(landscape, 'dashboard')}/healthz"
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
    headers = {"Accept": "*/*", "Accept-Language": "en-US"}
    http = {"headers": headers, "preferred_ip_protocol": "ipv4", **client}
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
