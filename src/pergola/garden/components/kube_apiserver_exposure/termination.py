"""The objects with which the ingress gateway terminates TLS for the API server.

The gateway authenticates clients by their certificates and forwards their identity to the API
server, which trusts it because the gateway presents a certificate of its own.
"""

import base64
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from pergola.api.kinds import ENVOY_FILTER
from pergola.api.objects import JsonObject, map_at
from pergola.garden.components import authorities
from pergola.garden.components.istio import INGRESS_NAMESPACE, INGRESS_PODS, service_host
from pergola.garden.components.kube_apiserver_exposure.hosts import hosts_of, other_certificate
from pergola.garden.components.kube_apiserver_exposure.services import MUTUAL, PORT, UPGRADED
from pergola.garden.components.service_mesh.filters import AUTHENTICATED_HOST, LUA
from pergola.garden.components.virtual_access import API_SERVER
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.manifests import manifest
from pergola.secrets_manager import Certificate, ManagedSecret, Options, SigningCA

CLIENT: Final = "istio-client-certificate"
SERVER: Final = "kube-apiserver"
"""The credential with the API server's certificate, which its component generates."""
SERVER_SECRET: Final = f"{NAMESPACE}-kube-apiserver-tls"
CLIENT_SECRET: Final = f"{NAMESPACE}-kube-apiserver-istio-mtls"
OTHER_SECRET: Final = f"{NAMESPACE}-kube-apiserver-wildcard-tls"
OWN_PORT: Final = "tls"
OTHER_PORT: Final = "wildcard-tls"
UPGRADE_ROUTE: Final = "connection-upgrade"

_MONTH: Final = timedelta(days=30)
_TLS: Final = "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"


def credentials() -> Iterator[Credential]:
    """Yield the certificate that the gateway presents to the API server."""
    config = Certificate(
        name=CLIENT, common_name="system:istio-gateway", for_client=True, publish_ca=False
    )
    options = Options(
        signed_by=SigningCA(authorities.FRONT_PROXY), validity=_MONTH, renew_at_percent=50
    )
    yield Credential(config, options)


def secrets(landscape: Landscape) -> Iterator[JsonObject]:
    """Yield the gateway's certificates: those for clients, and the one for the API server."""
    clients = _encoded(landscape.credentials.bundle(authorities.CLIENT), "bundle.crt")
    servers = _encoded(landscape.credentials.bundle(authorities.CLUSTER), "bundle.crt")
    yield _secret(SERVER_SECRET, clients, *_pair(landscape.credentials.current(SERVER)))
    yield _secret(CLIENT_SECRET, servers, *_pair(landscape.credentials.current(CLIENT)))
    if hosts_of(landscape).other:
        data = map_at(other_certificate(landscape), "data")
        yield _secret(OTHER_SECRET, clients, data["tls.crt"], data["tls.key"])


def _pair(secret: ManagedSecret) -> tuple[str, str]:
    return _encoded(secret, "tls.crt"), _encoded(secret, "tls.key")


def _encoded(secret: ManagedSecret, key: str) -> str:
    return base64.b64encode(secret.data[key]).decode()


def _secret(name: str, authority: str, certificate: str, key: str) -> JsonObject:
    data = {"cacert": authority, "cert": certificate, "key": key}
    return manifest("v1", "Secret", name, namespace=INGRESS_NAMESPACE, data=data)


def routes_of_clients(landscape: Landscape) -> JsonObject:
    """Return the EnvoyFilter that routes authenticated clients over connections of the gateway."""
    hosts = hosts_of(landscape)
    ports = {OWN_PORT: hosts.own, OTHER_PORT: hosts.other}
    patches = [
        *(patch for port, names in ports.items() for patch in _authenticated(names, port)),
        _http1(),
        *(_upgrades(port) for port, names in ports.items() if names),
    ]
    return manifest(
        ENVOY_FILTER.api_version,
        ENVOY_FILTER.kind,
        f"{NAMESPACE}-istio-tls-termination",
        namespace=INGRESS_NAMESPACE,
        spec={"workloadSelector": {"labels": INGRESS_PODS}, "configPatches": patches},
    )


def _authenticated(hosts: Sequence[str], port: str) -> Iterator[JsonObject]:
    for host in hosts:
        metadata = {
            "filter": LUA,
            "path": [{"key": AUTHENTICATED_HOST}],
            "value": {"string_match": {"exact": host}},
        }
        route = {
            "match": {"prefix": "/", "dynamic_metadata": [metadata]},
            "route": {"cluster": _cluster(MUTUAL)},
        }
        match = {"context": "GATEWAY", "routeConfiguration": {"name": _routes(port)}}
        yield _patch("HTTP_ROUTE", match, "INSERT_BEFORE", route)


def _http1() -> JsonObject:
    """Return the patch that selects HTTP/1.1, because HTTP/2 cannot upgrade connections."""
    context = {
        "@type": f"type.googleapis.com/{_TLS}",
        "commonTlsContext": {"alpnProtocols": ["http/1.1"]},
    }
    socket = {"name": "envoy.transport_sockets.tls", "typedConfig": context}
    match = {"context": "GATEWAY", "cluster": {"name": _cluster(UPGRADED)}}
    return _patch("CLUSTER", match, "MERGE", {"transportSocket": socket})


def _upgrades(port: str) -> JsonObject:
    """Return the patch that lets `kubectl exec` and the like upgrade their connections."""
    kinds = [{"upgrade_type": kind} for kind in ("spdy/3.1", "websocket")]
    configuration = {
        "name": _routes(port),
        "vhost": {"route": {"name": UPGRADE_ROUTE}},
    }
    match = {"context": "GATEWAY", "routeConfiguration": configuration}
    return _patch("HTTP_ROUTE", match, "MERGE", {"route": {"upgrade_configs": kinds}})


def _patch(kind: str, match: JsonObject, operation: str, value: JsonObject) -> JsonObject:
    patch = {"operation": operation, "value": value}
    return {"applyTo": kind, "match": match, "patch": patch}


def _cluster(service: str) -> str:
    return f"outbound|{PORT}||{service_host(service)}"


def _routes(port: str) -> str:
    """Return the name that istiod gives to the routes of a server of the `Gateway`."""
    return f"https.{PORT}.{port}.{API_SERVER}.{NAMESPACE}"
