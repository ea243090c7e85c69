"""Rules about the dashboard and the discovery server (spec 21 §7.4)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import Cause, forbidden, invalid, required
from pergola.api.operator_v1alpha1 import GardenSpec
from pergola.api.operator_v1alpha1.dashboard import Dashboard, DashboardOidc
from pergola.api.operator_v1alpha1.facets import DnsDomain
from pergola.api.operator_v1alpha1.garden import DnsManagement
from pergola.api.operator_v1alpha1.kube_api_server import KubeApiServer
from pergola.garden.rules.names import check_domain, check_issuer, check_subdomain

_DASHBOARD: Final = "spec.virtualCluster.gardener.gardenerDashboard"
_DISCOVERY: Final = "spec.virtualCluster.gardener.gardenerDiscoveryServer"


def check_dashboard(spec: GardenSpec) -> Iterator[Cause]:
    """Yield the findings about the dashboard and the discovery server."""
    gardener, server = (
        spec.virtual_cluster.gardener,
        spec.virtual_cluster.kubernetes.kube_api_server,
    )
    dashboard, discovery = gardener.dashboard, gardener.discovery_server
    if dashboard is not None:
        yield from _dashboard(dashboard, server)
        yield from _address(dashboard.domain, dashboard.tls_secret_name, spec.dns, _DASHBOARD)
    if discovery is not None:
        yield from _address(discovery.domain, discovery.tls_secret_name, spec.dns, _DISCOVERY)


def _dashboard(dashboard: Dashboard, server: KubeApiServer) -> Iterator[Cause]:
    if not dashboard.enable_token_login and dashboard.oidc_config is None:
        yield forbidden(
            f"{_DASHBOARD}.enableTokenLogin",
            "OIDC must be configured when token login is disabled",
        )
    if dashboard.propagate_ca_from_sni and server.sni is None:
        yield forbidden(
            f"{_DASHBOARD}.propagateCAFromSNI",
            "requires .spec.virtualCluster.kubernetes.kubeAPIServer.sni",
        )
    if dashboard.oidc_config is not None:
        yield from _oidc(dashboard.oidc_config, server, f"{_DASHBOARD}.oidcConfig")


def _oidc(oidc: DashboardOidc, server: KubeApiServer, path: str) -> Iterator[Cause]:
    """Check the OpenID client; issuer and client ID may be omitted only together."""
    if server.oidc_config is None and server.structured_authentication is None:
        yield invalid(
            path,
            oidc.to_json(),
            "must set OIDC configuration in .spec.virtualCluster.kubernetes.kubeAPIServer when "
            "configuring OIDC config for dashboard",
        )
    both_of_server = oidc.issuer_url is None and oidc.client_id_public is None
    fallback = server.oidc_config if both_of_server else None
    if oidc.issuer_url is not None:
        yield from check_issuer(oidc.issuer_url, f"{path}.issuerURL")
    elif fallback is None or not fallback.issuer_url:
        when = "" if both_of_server else " when ClientIDPublic is set"
        yield required(f"{path}.issuerURL", f"must provide Issuer URL{when}")
    if oidc.client_id_public is None and (fallback is None or not fallback.client_id):
        when = "" if both_of_server else " when Issuer URL is set"
        yield required(f"{path}.clientIDPublic", f"must provide a public client ID{when}")


def _address(
    domain: DnsDomain | None, secret: str | None, dns: DnsManagement | None, path: str
) -> Iterator[Cause]:
    if domain is not None:
        yield from check_domain(domain, dns, f"{path}.domain")
    if secret is not None:
        yield from check_subdomain(secret, f"{path}.tlsSecretName")
