"""Routes by server name: what Gateways and VirtualServices say about one gateway's pods."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pergola.api.objects import (
    JsonObject,
    Key,
    map_at,
    maps_at,
    metadata_of,
)

_EVERYWHERE = "*"
_HERE = "."
_PASSTHROUGH = "PASSTHROUGH"


class Proxy(NamedTuple):
    """A gateway's pod: its namespace and labels."""

    namespace: str
    labels: dict[str, str]


class Destination(NamedTuple):
    """A Service to which connections are passed on, and its share of them."""

    host: str
    port: int
    weight: int


class Route(NamedTuple):
    """The destinations of connections to some server names; no name: all others."""

    names: tuple[str, ...]
    destinations: tuple[Destination, ...]


@dataclass(frozen=True)
class Objects:
    """The objects of the cluster that configure gateways."""

    gateways: Sequence[JsonObject] = ()
    virtual_services: Sequence[JsonObject] = ()
    destination_rules: Sequence[JsonObject] = ()
    services: Sequence[JsonObject] = ()


def listeners(proxy: Proxy, objects: Objects) -> dict[int, list[Route]]:
    """Return the routes of a gateway by the port that its pods listen on.

    Of two routes for the same name, the one of the older VirtualService counts, because Envoy
    accepts a name only once.
    """
    found: dict[int, list[Route]] = {}
    taken: set[tuple[int, str]] = set()
    for gateway in sorted(objects.gateways, key=_age):
        if not _selects(map_at(gateway, "spec", "selector"), proxy.labels):
            continue
        for server in maps_at(gateway, "spec", "servers"):
            if not passes_through(server):
                continue
            number = map_at(server, "port").get("number", 0)
            port = _target_port(number, proxy, objects.services)
            routes = found.setdefault(port, [])
            for route in _routes(gateway, server, number, proxy, objects.virtual_services):
                fresh = tuple(n for n in route.names or ("",) if (port, n) not in taken)
                if fresh:
                    taken.update((port, name) for name in fresh)
                    routes.append(route._replace(names=tuple(filter(None, fresh))))
    return {port: routes for port, routes in found.items() if routes}


def passes_through(server: JsonObject) -> bool:
    """Return whether a Gateway's server passes TLS on as it is."""
    return map_at(server, "tls").get("mode") == _PASSTHROUGH


def is_exported(obj: JsonObject, namespace: str) -> bool:
    """Return whether a VirtualService or DestinationRule is visible in a namespace."""
    targets = map_at(obj, "spec").get("exportTo") or [_EVERYWHERE]
    here = metadata_of(obj).get("namespace", "") == namespace
    return _EVERYWHERE in targets or namespace in targets or (here and _HERE in targets)


def full_host(host: str, namespace: str) -> str:
    """Return the DNS name of a Service that is named as in an object of a namespace."""
    return host if "." in host else f"{host}.{namespace}.svc.cluster.local"


def _routes(
    gateway: JsonObject,
    server: JsonObject,
    port: int,
    proxy: Proxy,
    virtual_services: Iterable[JsonObject],
) -> Iterator[Route]:
    for virtual_service in sorted(virtual_services, key=_age):
        namespace = metadata_of(virtual_service)["namespace"]
        if not is_exported(virtual_service, proxy.namespace):
            continue
        if Key.of(gateway) not in _gateways_of(virtual_service):
            continue
        for rule in maps_at(virtual_service, "spec", "tls"):
            for match in maps_at(rule, "match"):
                names = [n for n in match.get("sniHosts", []) if _admits(server, n, namespace)]
                destinations = tuple(_destinations(rule, namespace))
                if names and destinations and match.get("port", port) == port:
                    yield Route(() if _EVERYWHERE in names else tuple(names), destinations)


def _destinations(rule: JsonObject, namespace: str) -> Iterator[Destination]:
    routes = maps_at(rule, "route")
    for route in routes:
        target = map_at(route, "destination")
        weight = route.get("weight", 0) if len(routes) > 1 else 1
        host = full_host(target.get("host", ""), namespace)
        yield Destination(host, map_at(target, "port").get("number", 443), weight)


def _gateways_of(virtual_service: JsonObject) -> set[Key]:
    own = metadata_of(virtual_service)["namespace"]
    found = set()
    for name in map_at(virtual_service, "spec").get("gateways", []):
        namespace, slash, rest = name.partition("/")
        found.add(Key(own if namespace == _HERE else namespace, rest) if slash else Key(own, name))
    return found


def _admits(server: JsonObject, name: str, namespace: str) -> bool:
    """Return whether a server's hosts, of the form `[namespace/]host`, cover a name."""
    for host in server.get("hosts", []):
        prefix, slash, rest = host.partition("/")
        pattern = rest if slash else host
        if slash and prefix not in (_EVERYWHERE, _HERE, namespace):
            continue
        if pattern in (_EVERYWHERE, name):
            return True
        if pattern.startswith("*.") and name.endswith(pattern[1:]):
            return True
    return False


def _target_port(number: int, proxy: Proxy, services: Iterable[JsonObject]) -> int:
    """Return the pods' port behind a port of the gateway's Service; the same if there is none."""
    for service in services:
        if metadata_of(service)["namespace"] != proxy.namespace:
            continue
        if not _selects(map_at(service, "spec", "selector"), proxy.labels):
            continue
        for port in maps_at(service, "spec", "ports"):
            if port.get("port") == number and isinstance(port.get("targetPort"), int):
                return int(port["targetPort"])
    return number


def _selects(selector: JsonObject, labels: dict[str, str]) -> bool:
    return bool(selector) and selector.items() <= labels.items()


def _age(obj: JsonObject) -> tuple[str, Key]:
    return metadata_of(obj).get("creationTimestamp", ""), Key.of(obj)
