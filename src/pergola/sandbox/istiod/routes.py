"""Routes by server name: the connections that a gateway passes on without decrypting them."""

from collections.abc import Iterator
from typing import NamedTuple

from pergola.api.objects import JsonObject, map_at, maps_at, metadata_of
from pergola.sandbox.istiod.selection import (
    ANY,
    Objects,
    Proxy,
    Server,
    full_host,
    passes_through,
    servers,
    virtual_services,
)


class Destination(NamedTuple):
    """A Service to which connections are passed on, and its share of them."""

    host: str
    port: int
    weight: int


class Route(NamedTuple):
    """The destinations of connections to some server names; no name: all others."""

    names: tuple[str, ...]
    destinations: tuple[Destination, ...]


def listeners(proxy: Proxy, objects: Objects) -> dict[int, list[Route]]:
    """Return the routes of a gateway by the port that its pods listen on.

    Of two routes for the same name, the one of the older VirtualService wins, because Envoy
    accepts a name only once.
    """
    found: dict[int, list[Route]] = {}
    taken: set[tuple[int, str]] = set()
    for server in servers(proxy, objects):
        if not passes_through(server.spec):
            continue
        routes = found.setdefault(server.port, [])
        for route in _routes(server, proxy, objects):
            fresh = tuple(n for n in route.names or ("",) if (server.port, n) not in taken)
            if fresh:
                taken.update((server.port, name) for name in fresh)
                routes.append(route._replace(names=tuple(filter(None, fresh))))
    return {port: routes for port, routes in found.items() if routes}


def destinations(rule: JsonObject, namespace: str) -> Iterator[Destination]:
    """Yield the destinations of a VirtualService's rule, which is in a namespace."""
    routes = maps_at(rule, "route")
    for route in routes:
        target = map_at(route, "destination")
        weight = route.get("weight", 0) if len(routes) > 1 else 1
        host = full_host(target.get("host", ""), namespace)
        yield Destination(host, map_at(target, "port").get("number", 443), weight)


def _routes(server: Server, proxy: Proxy, objects: Objects) -> Iterator[Route]:
    for virtual_service in virtual_services(server, proxy, objects):
        namespace = metadata_of(virtual_service)["namespace"]
        for rule in maps_at(virtual_service, "spec", "tls"):
            for match in maps_at(rule, "match"):
                names = [n for n in match.get("sniHosts", []) if server.admits(n, namespace)]
                found = tuple(destinations(rule, namespace))
                if names and found and match.get("port", server.number) == server.number:
                    yield Route(() if ANY in names else tuple(names), found)
