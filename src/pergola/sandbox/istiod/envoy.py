"""Envoy's configuration of a gateway: listeners that read server names, and clusters."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pergola.api.objects import JsonObject, map_at
from pergola.sandbox.istiod import clusters, termination
from pergola.sandbox.istiod.clusters import CLUSTER, address, cluster, policy_of
from pergola.sandbox.istiod.patches import destinations as patches_to
from pergola.sandbox.istiod.patches import patches
from pergola.sandbox.istiod.patching import patched_cluster, patched_listener
from pergola.sandbox.istiod.requests import routes as http_routes
from pergola.sandbox.istiod.requests import seconds, target
from pergola.sandbox.istiod.routes import Route, destinations, listeners
from pergola.sandbox.istiod.selection import Objects, Proxy
from pergola.sandbox.istiod.termination import Host, Termination, terminations
from pergola.sandbox.istiod.tls import downstream

_TYPES: Final = "type.googleapis.com/envoy"
_NETWORK: Final = f"{_TYPES}.extensions.filters.network"
LISTENER: Final = f"{_TYPES}.config.listener.v3.Listener"


def render(proxy: Proxy, objects: Objects) -> dict[str, list[JsonObject]]:
    """Return a gateway's listeners and clusters, each under its type."""
    passing, ending = listeners(proxy, objects), terminations(proxy, objects)
    found = patches(proxy, objects)
    chains = {
        port: [
            *(_passage(route, proxy, objects) for route in passing.get(port, ())),
            *_terminating(ending.get(port, ()), passing.get(port, ())),
        ]
        for port in sorted({*passing, *ending})
    }
    targets = sorted({*_targets(passing, ending), *patches_to(found)})
    rendered = (cluster(host, port, proxy, objects) for host, port in targets)
    return {
        LISTENER: [patched_listener(_listener(port, chains[port]), found) for port in chains],
        CLUSTER: [patched_cluster(each, found) for each in rendered if each is not None],
    }


def problems(proxy: Proxy, objects: Objects) -> Iterator[str]:
    """Yield a sentence for each certificate that a gateway lacks."""
    yield from termination.problems(proxy, objects)
    targets = _targets(listeners(proxy, objects), terminations(proxy, objects))
    patched = patches_to(patches(proxy, objects))
    for host in dict.fromkeys(host for host, _ in (*targets, *patched)):
        found = clusters.problem(host, proxy, objects)
        if found:
            yield found


def _targets(
    passing: Mapping[int, Sequence[Route]], ending: Mapping[int, Sequence[Termination]]
) -> list[tuple[str, int]]:
    """Return the Services, with their ports, that are the target of any traffic."""
    of_routes = (d for routes in passing.values() for route in routes for d in route.destinations)
    of_rules = (
        d
        for servers in ending.values()
        for server in servers
        for host in server.hosts
        for rule in host.rules
        for d in destinations(rule, host.namespace)
    )
    return sorted({(d.host, d.port) for d in (*of_routes, *of_rules)})


def _listener(port: int, chains: Sequence[JsonObject]) -> JsonObject:
    inspector = {"@type": f"{_TYPES}.extensions.filters.listener.tls_inspector.v3.TlsInspector"}
    return {
        "@type": LISTENER,
        "name": f"0.0.0.0_{port}",
        "address": address("0.0.0.0", port),  # noqa: S104 - of the gateway's pod
        "listener_filters": [
            {"name": "envoy.filters.listener.tls_inspector", "typed_config": inspector}
        ],
        "filter_chains": list(chains),
    }


def _chain(names: Sequence[str], name: str, settings: JsonObject) -> JsonObject:
    return {
        "filter_chain_match": {"server_names": list(names)} if names else {},
        "filters": [{"name": f"envoy.filters.network.{name}", "typed_config": settings}],
    }


def _passage(route: Route, proxy: Proxy, objects: Objects) -> JsonObject:
    host = route.destinations[0].host if route.destinations else ""
    policy = policy_of(host, proxy, objects.destination_rules)
    settings: JsonObject = {
        "@type": f"{_NETWORK}.tcp_proxy.v3.TcpProxy",
        "stat_prefix": ",".join(route.names) or "any",
        **target(route.destinations),
    }
    longest = seconds(map_at(policy, "connectionPool", "tcp").get("maxConnectionDuration"))
    if longest:
        settings["max_downstream_connection_duration"] = longest
    return _chain(route.names, "tcp_proxy", settings)


def _terminating(servers: Sequence[Termination], passing: Sequence[Route]) -> Iterator[JsonObject]:
    """Yield the chains of servers, without names that are passed through or another server's."""
    taken = {name for route in passing for name in route.names or ("",)}
    for server in servers:
        fresh = tuple(name for name in server.names or ("",) if name not in taken)
        if fresh:
            taken.update(fresh)
            chain = _chain(
                tuple(filter(None, fresh)), "http_connection_manager", _connections(server)
            )
            yield {**chain, "transport_socket": downstream(server.credential, server.mode)}


def _connections(server: Termination) -> JsonObject:
    router = {"@type": f"{_TYPES}.extensions.filters.http.router.v3.Router"}
    return {
        "@type": f"{_NETWORK}.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": server.name,
        "route_config": {
            "name": server.name,
            "ignore_port_in_host_matching": True,
            # A cluster may follow later, or lack its certificate.
            "validate_clusters": False,
            "virtual_hosts": [_virtual_host(host, server.number) for host in server.hosts],
        },
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": router}],
        "normalize_path": True,
        "use_remote_address": True,
        # Clients cannot claim a certificate that they do not have.
        "forward_client_cert_details": "SANITIZE_SET",
        "set_current_client_cert_details": {"subject": True, "cert": True, "dns": True},
        "upgrade_configs": [{"upgrade_type": "websocket"}],
        "stream_idle_timeout": "0s",  # watches are silent for long
    }


def _virtual_host(host: Host, number: int) -> JsonObject:
    return {
        "name": host.name,
        "domains": list(host.domains),
        "routes": list(http_routes(host, number)),
    }
