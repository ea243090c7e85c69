"""Exposure of hosts through the garden's ingress gateway (spec 20 §13, §15.3).

A `Gateway` names the hosts and their certificate. A `VirtualService` routes requests to a Service,
and a `DestinationRule` configures the gateway's connections to it. Certificates are copied to the
namespace of the gateway because Istio reads them only there.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Final

from pergola.api.kinds import DESTINATION_RULE, GATEWAY, VIRTUAL_SERVICE
from pergola.api.objects import GroupVersionKind, JsonObject, map_at, name_of
from pergola.garden.landscape import NAMESPACE
from pergola.manifests import manifest
from pergola.secrets_manager import ManagedSecret

INGRESS_NAMESPACE: Final = "virtual-garden-istio-ingress"
INGRESS_PODS: Final = {"istio": "ingressgateway", "istio-role": "garden"}
"""The labels by which every `Gateway` selects the gateway's pods."""
EXPORTED: Final = {"networking.istio.io/exportTo": INGRESS_NAMESPACE}
"""The annotation of a Service that the gateway routes requests to."""
BASIC_AUTH_SERVER: Final = "virtual-garden-istio-basic-auth-server"
"""The server that checks passwords for each `VirtualService` with the labels of `basic_auth`."""

FORBIDDEN: Final = 403
_HTTPS: Final = 443
_DAY: Final = "86400s"
_KEEPALIVE: Final = {"interval": "75s", "time": "7200s"}
_NEAREST: Final = {
    "localityLbSetting": {"enabled": True, "failoverPriority": ["topology.kubernetes.io/zone"]}
}
_LEAST_BUSY: Final = {"simple": "LEAST_REQUEST"}


def service_host(service: str) -> str:
    """Return the host name by which the gateway knows a Service of the garden."""
    return f"{service}.{NAMESPACE}.svc.cluster.local"


def basic_auth(secret: str) -> dict[str, str]:
    """Return the labels of a `VirtualService` whose hosts require a password.

    Args:
        secret: The config name of the credential.
    """
    prefix = "reference.gardener.cloud/basic-auth"
    return {
        f"{prefix}-secret-managed": "true",
        f"{prefix}-secret-name": secret,
        f"{prefix}-server-name": BASIC_AUTH_SERVER,
    }


def gateway(name: str, labels: Mapping[str, str], *servers: JsonObject) -> JsonObject:
    """Return a `Gateway` with these servers."""
    return _networking(GATEWAY, name, labels, {"selector": INGRESS_PODS, "servers": list(servers)})


def https_server(
    hosts: Sequence[str], secret: str, mode: str = "SIMPLE", *, port: str = "tls"
) -> JsonObject:
    """Return a server that terminates TLS.

    Args:
        secret: The name of the Secret with the certificate, in the namespace of the gateway.
        mode: `OPTIONAL_MUTUAL` if clients may present a certificate.
        port: The name of its port, unique in the `Gateway`.
    """
    return _server(hosts, "HTTPS", {"credentialName": secret, "mode": mode}, port)


def tls_server(hosts: Sequence[str]) -> JsonObject:
    """Return a server that passes TLS through to the Service."""
    return _server(hosts, "TLS", {"mode": "PASSTHROUGH"})


def _server(hosts: Sequence[str], protocol: str, tls: JsonObject, port: str = "tls") -> JsonObject:
    listener = {"name": port, "number": _HTTPS, "protocol": protocol}
    return {"hosts": list(hosts), "port": listener, "tls": tls}


def http_routes(
    name: str, labels: Mapping[str, str], hosts: Sequence[str], *routes: JsonObject
) -> JsonObject:
    """Return the `VirtualService` for the hosts of an `https_server`; the first match wins.

    Args:
        name: Its name and that of the `Gateway`.
    """
    return _virtual_service(name, labels, hosts, {"http": list(routes)}, name)


def tls_route(
    name: str,
    labels: Mapping[str, str],
    hosts: Sequence[str],
    service: str,
    port: int,
    *,
    gateway: str = "",
) -> JsonObject:
    """Return the `VirtualService` for the hosts of a `tls_server`.

    Args:
        gateway: The name of the `Gateway`, if it differs from `name`.
    """
    match = {"port": _HTTPS, "sniHosts": list(hosts)}
    routes = {"tls": [{"match": [match], **route(service, port)}]}
    return _virtual_service(name, labels, hosts, routes, gateway or name)


def route(service: str, port: int) -> JsonObject:
    """Return the route that sends all requests to a Service."""
    return {"route": [{"destination": {"host": service_host(service), "port": {"number": port}}}]}


def refused(name: str, prefix: str) -> JsonObject:
    """Return the route that rejects requests whose path has the prefix."""
    return {
        "name": name,
        "match": [{"uri": {"prefix": prefix}}],
        "directResponse": {"status": FORBIDDEN},
    }


def _virtual_service(
    name: str, labels: Mapping[str, str], hosts: Sequence[str], routes: JsonObject, gateway: str
) -> JsonObject:
    spec = {"exportTo": [INGRESS_NAMESPACE], "gateways": [gateway], "hosts": list(hosts), **routes}
    return _networking(VIRTUAL_SERVICE, name, labels, spec)


def destination_rule(
    name: str, labels: Mapping[str, str], service: str, tls: JsonObject | None = None
) -> JsonObject:
    """Return the `DestinationRule` that prefers pods in the gateway's own zone.

    Args:
        tls: The result of `verified`; without it, bytes pass unchanged, either in plain text or
            encrypted by the client.
    """
    policy: JsonObject = {"loadBalancer": _NEAREST, "outlierDetection": {}}
    return _destination_rule(name, labels, service, {**policy, "tls": tls or {"mode": "DISABLE"}})


def spreading_rule(
    name: str,
    labels: Mapping[str, str],
    service: str,
    tls: JsonObject,
    **pool: JsonObject,
) -> JsonObject:
    """Return the `DestinationRule` that prefers pods with the fewest active requests.

    Args:
        pool: Settings of the connection pool in addition to those for TCP.
    """
    policy: JsonObject = {"loadBalancer": _LEAST_BUSY, "tls": tls}
    return _destination_rule(name, labels, service, policy, pool)


def verified(secret: str, host: str, mode: str = "SIMPLE") -> JsonObject:
    """Return the TLS settings of verified connections to a Service.

    Args:
        secret: The name of the Secret with the authority, in the namespace of the gateway.
        host: The name in the server's certificate.
        mode: `MUTUAL` if the gateway presents the certificate of the same Secret.
    """
    return {"credentialName": secret, "mode": mode, "sni": host}


def _destination_rule(
    name: str,
    labels: Mapping[str, str],
    service: str,
    policy: JsonObject,
    pool: JsonObject | None = None,
) -> JsonObject:
    tcp = {"maxConnectionDuration": _DAY, "tcpKeepalive": _KEEPALIVE}
    spec = {
        "exportTo": [INGRESS_NAMESPACE],
        "host": service_host(service),
        "trafficPolicy": {"connectionPool": {"tcp": tcp, **(pool or {})}, **policy},
    }
    return _networking(DESTINATION_RULE, name, labels, spec)


def certificate_name(owner: str, secret: str) -> str:
    """Return the name of the gateway's copy of a Secret."""
    return f"{NAMESPACE}-{owner}-{secret}"


def certificate(owner: str, labels: Mapping[str, str], secret: JsonObject) -> JsonObject:
    """Return the gateway's copy of the Secret with the certificate of an `https_server`."""
    data = map_at(secret, "data")
    kept = {key: data[key] for key in ("tls.crt", "tls.key")}
    return _secret(certificate_name(owner, name_of(secret)), labels, kept)


def authority(name: str, labels: Mapping[str, str], bundle: ManagedSecret) -> JsonObject:
    """Return the Secret with which the gateway verifies a server.

    Args:
        bundle: The bundle of the authority that signed the server's certificate.
    """
    content = base64.b64encode(bundle.data["bundle.crt"]).decode()
    return _secret(f"{NAMESPACE}-{name}", labels, {"cacert": content})


def _secret(name: str, labels: Mapping[str, str], data: JsonObject) -> JsonObject:
    return manifest(
        "v1",
        "Secret",
        name,
        namespace=INGRESS_NAMESPACE,
        labels=labels,
        data=data,
    )


def _networking(
    kind: GroupVersionKind, name: str, labels: Mapping[str, str], spec: JsonObject
) -> JsonObject:
    return manifest(
        kind.api_version, kind.kind, name, namespace=NAMESPACE, labels=labels, spec=spec
    )
