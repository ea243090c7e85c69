"""The configuration of one gateway: Gateways that select it, and their VirtualServices."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pergola.api.objects import JsonObject, Key, map_at, maps_at, metadata_of

ANY = "*"
_HERE = "."
_PASSTHROUGH = "PASSTHROUGH"


class Proxy(NamedTuple):
    """A gateway's pod: its namespace and labels."""

    namespace: str
    labels: dict[str, str]


@dataclass(frozen=True)
class Objects:
    """The objects of the cluster that configure gateways; of Secrets, their data only."""

    gateways: Sequence[JsonObject] = ()
    virtual_services: Sequence[JsonObject] = ()
    destination_rules: Sequence[JsonObject] = ()
    services: Sequence[JsonObject] = ()
    envoy_filters: Sequence[JsonObject] = ()
    secrets: Mapping[Key, Mapping[str, str]] = field(default_factory=dict)


class Server(NamedTuple):
    """A server of a Gateway, and the port of the gateway's pods that it listens on."""

    gateway: JsonObject
    spec: JsonObject
    port: int

    @property
    def number(self) -> int:
        """The port of the gateway's Service."""
        number: int = map_at(self.spec, "port").get("number", 0)
        return number

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts without the namespaces that limit them."""
        return tuple(host.rpartition("/")[2] for host in self.spec.get("hosts", []))

    def admits(self, name: str, namespace: str) -> bool:
        """Return whether hosts, of the form `[namespace/]host`, cover a name of a namespace."""
        for host in self.spec.get("hosts", []):
            prefix, slash, rest = host.partition("/")
            pattern = rest if slash else host
            if slash and prefix not in (ANY, _HERE, namespace):
                continue
            if pattern in (ANY, name):
                return True
            if pattern.startswith("*.") and name.endswith(pattern[1:]):
                return True
        return False


def servers(proxy: Proxy, objects: Objects) -> Iterator[Server]:
    """Yield the servers of a gateway, those of older Gateways first."""
    for gateway in sorted(objects.gateways, key=_age):
        if _selects(map_at(gateway, "spec", "selector"), proxy.labels):
            for spec in maps_at(gateway, "spec", "servers"):
                number = map_at(spec, "port").get("number", 0)
                yield Server(gateway, spec, _target_port(number, proxy, objects.services))


def virtual_services(server: Server, proxy: Proxy, objects: Objects) -> Iterator[JsonObject]:
    """Yield the VirtualServices of a server that the gateway may see, older ones first."""
    for found in sorted(objects.virtual_services, key=_age):
        if is_exported(found, proxy.namespace) and Key.of(server.gateway) in _gateways_of(found):
            yield found


def passes_through(server: JsonObject) -> bool:
    """Return whether a Gateway's server passes TLS on as it is."""
    return map_at(server, "tls").get("mode") == _PASSTHROUGH


def is_exported(obj: JsonObject, namespace: str) -> bool:
    """Return whether a VirtualService or DestinationRule is visible in a namespace."""
    targets = map_at(obj, "spec").get("exportTo") or [ANY]
    here = metadata_of(obj).get("namespace", "") == namespace
    return ANY in targets or namespace in targets or (here and _HERE in targets)


def full_host(host: str, namespace: str) -> str:
    """Return the DNS name of a Service that is named as in an object of a namespace."""
    return host if "." in host else f"{host}.{namespace}.svc.cluster.local"


def _gateways_of(virtual_service: JsonObject) -> set[Key]:
    own = metadata_of(virtual_service)["namespace"]
    found = set()
    for name in map_at(virtual_service, "spec").get("gateways", []):
        namespace, slash, rest = name.partition("/")
        found.add(Key(own if namespace == _HERE else namespace, rest) if slash else Key(own, name))
    return found


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
