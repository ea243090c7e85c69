"""Envoy's configuration of a gateway: listeners that read server names, and clusters."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pergola.api.durations import DurationError, parse_duration
from pergola.api.objects import JsonObject, map_at, metadata_of
from pergola.sandbox.istiod.routes import (
    Destination,
    Objects,
    Proxy,
    Route,
    full_host,
    is_exported,
    listeners,
)

_TYPES: Final = "type.googleapis.com/envoy"
LISTENER: Final = f"{_TYPES}.config.listener.v3.Listener"
CLUSTER: Final = f"{_TYPES}.config.cluster.v3.Cluster"
_CONNECT_TIMEOUT: Final = "10s"  # Istio's default
_BALANCING: Final = {
    "LEAST_CONN": "LEAST_REQUEST",
    "LEAST_REQUEST": "LEAST_REQUEST",
    "RANDOM": "RANDOM",
    "ROUND_ROBIN": "ROUND_ROBIN",
}


def render(proxy: Proxy, objects: Objects) -> dict[str, list[JsonObject]]:
    """Return a gateway's listeners and clusters, each under its type."""
    by_port = listeners(proxy, objects)
    destinations = {
        (d.host, d.port)
        for routes in by_port.values()
        for route in routes
        for d in route.destinations
    }
    policies = {host: _policy(host, proxy, objects.destination_rules) for host, _ in destinations}
    return {
        LISTENER: [_listener(port, by_port[port], policies) for port in sorted(by_port)],
        CLUSTER: [_cluster(host, port, policies[host]) for host, port in sorted(destinations)],
    }


def _listener(port: int, routes: Sequence[Route], policies: Mapping[str, JsonObject]) -> JsonObject:
    inspector = {"@type": f"{_TYPES}.extensions.filters.listener.tls_inspector.v3.TlsInspector"}
    return {
        "@type": LISTENER,
        "name": f"0.0.0.0_{port}",
        "address": _address("0.0.0.0", port),  # noqa: S104 - of the gateway's pod
        "listener_filters": [
            {"name": "envoy.filters.listener.tls_inspector", "typed_config": inspector}
        ],
        "filter_chains": [_chain(route, policies) for route in routes],
    }


def _chain(route: Route, policies: Mapping[str, JsonObject]) -> JsonObject:
    policy = policies[route.destinations[0].host] if route.destinations else {}
    proxy: JsonObject = {
        "@type": f"{_TYPES}.extensions.filters.network.tcp_proxy.v3.TcpProxy",
        "stat_prefix": ",".join(route.names) or "any",
        **_target(route.destinations),
    }
    longest = _seconds(map_at(policy, "connectionPool", "tcp").get("maxConnectionDuration"))
    if longest:
        proxy["max_downstream_connection_duration"] = longest
    return {
        "filter_chain_match": {"server_names": list(route.names)} if route.names else {},
        "filters": [{"name": "envoy.filters.network.tcp_proxy", "typed_config": proxy}],
    }


def _target(destinations: Sequence[Destination]) -> JsonObject:
    if len(destinations) == 1:
        return {"cluster": _name(destinations[0].host, destinations[0].port)}
    weighted = [
        {"name": _name(d.host, d.port), "weight": d.weight} for d in destinations if d.weight
    ]
    return {"weighted_clusters": {"clusters": weighted}}


def _cluster(host: str, port: int, policy: JsonObject) -> JsonObject:
    pool = map_at(policy, "connectionPool", "tcp")
    balancing = map_at(policy, "loadBalancer").get("simple", "")
    cluster: JsonObject = {
        "@type": CLUSTER,
        "name": _name(host, port),
        # The address of the Service, behind which kube-proxy balances.
        "type": "STRICT_DNS",
        "dns_lookup_family": "V4_PREFERRED",
        "connect_timeout": _seconds(pool.get("connectTimeout")) or _CONNECT_TIMEOUT,
        "lb_policy": _BALANCING.get(balancing, "LEAST_REQUEST"),
        "load_assignment": {
            "cluster_name": _name(host, port),
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(host, port)}}]}],
        },
    }
    keepalive = _keepalive(map_at(pool, "tcpKeepalive"))
    if keepalive:
        cluster["upstream_connection_options"] = {"tcp_keepalive": keepalive}
    return cluster


def _keepalive(settings: JsonObject) -> JsonObject:
    found: JsonObject = {}
    for ours, theirs in (("time", "keepalive_time"), ("interval", "keepalive_interval")):
        seconds = _seconds(settings.get(ours))
        if seconds:
            found[theirs] = int(float(seconds.removesuffix("s")))
    if settings.get("probes"):
        found["keepalive_probes"] = settings["probes"]
    return found


def _policy(host: str, proxy: Proxy, rules: Iterable[JsonObject]) -> JsonObject:
    for rule in rules:
        namespace = metadata_of(rule)["namespace"]
        named = full_host(map_at(rule, "spec").get("host", ""), namespace)
        if named == host and is_exported(rule, proxy.namespace):
            return map_at(rule, "spec", "trafficPolicy")
    return {}


def _seconds(duration: str | None) -> str:
    """Return a duration as Envoy's JSON writes it, or an empty text if there is none."""
    try:
        return f"{parse_duration(duration).total_seconds():g}s" if duration else ""
    except DurationError:
        return ""


def _name(host: str, port: int) -> str:
    return f"outbound|{port}||{host}"


def _address(host: str, port: int) -> JsonObject:
    return {"socket_address": {"address": host, "port_value": port}}
