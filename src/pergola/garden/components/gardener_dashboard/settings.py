"""The hosts of the dashboard, and the API server that it presents to users."""

import base64
from typing import Final

from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1.dashboard import Dashboard
from pergola.api.operator_v1alpha1.kube_api_server import Sni
from pergola.garden.components import authorities
from pergola.garden.components.conventions import TO_PRIVATE_NETWORKS, TO_PUBLIC_NETWORKS
from pergola.garden.components.gardener_program import SERVER, Program, gardener_labels
from pergola.garden.components.kube_apiserver_exposure.hosts import hosts_of
from pergola.garden.components.priority_classes import P200
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.errors import ReferenceMissing

NAME: Final = "gardener-dashboard"
PORT: Final = 8080
METRICS_PORT: Final = 9050
TERMINAL_ADMIN: Final = "dashboard-terminal-admin"
"""The ServiceAccount in the virtual cluster that administrators' terminals use."""
PROGRAM: Final = Program(
    name=NAME,
    labels=gardener_labels("dashboard"),
    priority=P200,
    kind=SERVER,
    to={**TO_PUBLIC_NETWORKS, **TO_PRIVATE_NETWORKS},
)

_CA_KEY: Final = "ca.crt"


def dashboard_of(landscape: Landscape) -> Dashboard:
    """Return the dashboard settings of the Garden, or defaults if it has no dashboard."""
    return landscape.virtual.gardener.dashboard or Dashboard()


def hosts(landscape: Landscape) -> tuple[str, ...]:
    """Return the host names of the dashboard."""
    domain = dashboard_of(landscape).domain
    if domain is not None:
        return (domain.name,)
    return tuple(f"dashboard.{domain.name}" for domain in landscape.runtime.ingress.domains)


def api_server_url(landscape: Landscape) -> str:
    """Return the URL of the API server in users' kubeconfigs."""
    return f"https://{_sni_host(landscape) or f'api.{landscape.domains[0]}'}"


def api_server_authority(landscape: Landscape) -> str:
    """Return the API server's CA certificate for users' kubeconfigs, base64-encoded.

    Empty if users' systems are expected to trust the SNI certificate already.
    """
    sni = _sni(landscape)
    if sni is None:
        bundle = landscape.credentials.bundle(authorities.CLUSTER).data["bundle.crt"]
        return base64.b64encode(bundle).decode()
    if not dashboard_of(landscape).propagate_ca_from_sni:
        return ""
    return base64.b64encode(_sni_authority(landscape, sni)).decode()


def _sni_authority(landscape: Landscape, sni: Sni) -> bytes:
    if sni.secret_name:
        return landscape.referenced("Secret", sni.secret_name).get(_CA_KEY, b"")
    wildcard = landscape.wildcard_certificate or {}
    encoded = (wildcard.get("data") or {}).get(_CA_KEY, "")
    return base64.b64decode(encoded)


def _sni(landscape: Landscape) -> Sni | None:
    return landscape.api_server.sni if _sni_host(landscape) else None


def _sni_host(landscape: Landscape) -> str | None:
    """Return a host name with the SNI certificate; a pattern with a wildcard is not one."""
    sni = landscape.api_server.sni
    exact = [name for name in (sni.domain_patterns if sni else ()) if "*" not in name]
    return next(iter((*exact, *hosts_of(landscape).other)), None)


def secret_object(landscape: Landscape, name: str) -> JsonObject:
    """Return a Secret that the Garden names.

    Raises:
        ReferenceMissing: It does not exist.
    """
    found = landscape.references.get(("Secret", Key(NAMESPACE, name)))
    if found is None:
        raise ReferenceMissing("Secret", NAMESPACE, name)
    return found
