"""The address of the API server for agents that cannot reach it through its Service."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from pergola.api.objects import maps_at
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.networking.cilium.config import NetworkConfig

HTTPS_PORT: Final = 443
EXTERNAL: Final = "external"
_MISSING_HOST: Final = "required kubernetes service host missing while running without kube-proxy"
_HOST_ADVICE: Final = (
    "set kubeproxy.k8sServiceHost and kubeproxy.k8sServicePort in the network config, or wait for"
    " the address"
)


@dataclass(frozen=True, slots=True)
class ApiServer:
    """The API server's address for agents before Services are routed."""

    host: str
    port: int


def api_server(config: NetworkConfig, shoot: Shoot) -> ApiServer:
    """Return the configured address, or else the external address of the API server.

    Raises:
        ExtensionError: there is none yet; a later reconciliation of the Shoot may report one.
    """
    proxy = config.kubeproxy
    if proxy is not None and proxy.k8s_service_host and proxy.k8s_service_port:
        return ApiServer(proxy.k8s_service_host, proxy.k8s_service_port)
    if not maps_at(shoot.raw, "status", "advertisedAddresses"):
        raise _no_host("advertised addresses missing in shoot status")
    url = shoot.advertised_address(EXTERNAL)
    if url is None:
        # Users search for this text; its spelling is older than we are.
        raise _no_host("external address not found among advertised adresses")
    return _address(url)


def _address(url: str) -> ApiServer:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host:
        raise _no_host(f'the external advertised address "{url}" has no host')
    return ApiServer(host, port or HTTPS_PORT)


def _no_host(reason: str) -> ExtensionError:
    return ExtensionError(
        f"{_MISSING_HOST}: {reason}; {_HOST_ADVICE}", Code.RETRYABLE_CONFIGURATION_PROBLEM
    )
