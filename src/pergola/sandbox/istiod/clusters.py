"""Envoy's clusters: the Services that connections and requests are passed on to."""

from collections.abc import Iterable
from typing import Final

from pergola.api.objects import JsonObject, map_at, maps_at, metadata_of
from pergola.pki import CertificateError
from pergola.sandbox.istiod.requests import cluster_name, seconds
from pergola.sandbox.istiod.selection import Objects, Proxy, full_host, is_exported
from pergola.sandbox.istiod.tls import upstream

_TYPES: Final = "type.googleapis.com/envoy"
CLUSTER: Final = f"{_TYPES}.config.cluster.v3.Cluster"
_HTTP: Final = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_AS_THE_CLIENT: Final[JsonObject] = {
    "use_downstream_protocol_config": {"http_protocol_options": {}, "http2_protocol_options": {}}
}
_HTTP2: Final[JsonObject] = {"explicit_http_config": {"http2_protocol_options": {}}}
_CONNECT_TIMEOUT: Final = "10s"  # Istio's default
_BALANCING: Final = {
    "LEAST_CONN": "LEAST_REQUEST",
    "LEAST_REQUEST": "LEAST_REQUEST",
    "RANDOM": "RANDOM",
    "ROUND_ROBIN": "ROUND_ROBIN",
}


def cluster(host: str, port: int, proxy: Proxy, objects: Objects) -> JsonObject | None:
    """Return the cluster of a Service's port; None if its connections cannot be encrypted.

    Without a cluster, Envoy answers requests with 503; `problem` says why.
    """
    policy = policy_of(host, proxy, objects.destination_rules)
    try:
        socket = upstream(map_at(policy, "tls"), proxy.namespace, objects.secrets)
    except CertificateError:
        return None
    pool = map_at(policy, "connectionPool", "tcp")
    balancing = map_at(policy, "loadBalancer").get("simple", "")
    found: JsonObject = {
        "@type": CLUSTER,
        "name": cluster_name(host, port),
        # The address of the Service, behind which kube-proxy balances.
        "type": "STRICT_DNS",
        "dns_lookup_family": "V4_PREFERRED",
        "connect_timeout": seconds(pool.get("connectTimeout")) or _CONNECT_TIMEOUT,
        "lb_policy": _BALANCING.get(balancing, "LEAST_REQUEST"),
        "load_assignment": {
            "cluster_name": cluster_name(host, port),
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address(host, port)}}]}],
        },
    }
    if socket is not None:
        found["transport_socket"] = socket
    if map_at(policy, "connectionPool", "http").get("useClientProtocol"):
        found["typed_extension_protocol_options"] = {_HTTP: _versions(_AS_THE_CLIENT)}
    elif _speaks_http2(host, port, objects.services):
        found["typed_extension_protocol_options"] = {_HTTP: _versions(_HTTP2)}
    keepalive = _keepalive(map_at(pool, "tcpKeepalive"))
    if keepalive:
        found["upstream_connection_options"] = {"tcp_keepalive": keepalive}
    return found


def problem(host: str, proxy: Proxy, objects: Objects) -> str:
    """Return why connections to a Service cannot be encrypted, or an empty text."""
    policy = policy_of(host, proxy, objects.destination_rules)
    try:
        upstream(map_at(policy, "tls"), proxy.namespace, objects.secrets)
    except CertificateError as error:
        return f"DestinationRule of {host}: {error}"
    return ""


def policy_of(host: str, proxy: Proxy, rules: Iterable[JsonObject]) -> JsonObject:
    """Return how a gateway connects to a Service."""
    for rule in rules:
        namespace = metadata_of(rule)["namespace"]
        named = full_host(map_at(rule, "spec").get("host", ""), namespace)
        if named == host and is_exported(rule, proxy.namespace):
            return map_at(rule, "spec", "trafficPolicy")
    return {}


def address(host: str, port: int) -> JsonObject:
    """Return an address as Envoy writes it."""
    return {"socket_address": {"address": host, "port_value": port}}


def _versions(chosen: JsonObject) -> JsonObject:
    """Return the versions of HTTP of requests to a cluster."""
    return {"@type": f"type.googleapis.com/{_HTTP}", **chosen}


def _speaks_http2(host: str, port: int, services: Iterable[JsonObject]) -> bool:
    """Return whether the name of a Service's port says HTTP/2, as Istio reads it."""
    return any(
        each.get("name", "").partition("-")[0] in ("grpc", "http2")
        for service in services
        if full_host(metadata_of(service)["name"], metadata_of(service)["namespace"]) == host
        for each in maps_at(service, "spec", "ports")
        if each.get("port") == port
    )


def _keepalive(settings: JsonObject) -> JsonObject:
    found: JsonObject = {}
    for ours, theirs in (("time", "keepalive_time"), ("interval", "keepalive_interval")):
        duration = seconds(settings.get(ours))
        if duration:
            found[theirs] = int(float(duration.removesuffix("s")))
    if settings.get("probes"):
        found["keepalive_probes"] = settings["probes"]
    return found
