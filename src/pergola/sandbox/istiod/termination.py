"""Servers of Gateways that decrypt connections, and the hosts that they serve by HTTP."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, Key, map_at, maps_at, metadata_of
from pergola.pki import CertificateError
from pergola.sandbox.istiod.credentials import Credential
from pergola.sandbox.istiod.selection import (
    ANY,
    Objects,
    Proxy,
    Server,
    servers,
    virtual_services,
)
from pergola.sandbox.istiod.tls import TERMINATING, server_credential

_HTTPS: Final = "HTTPS"


class Host(NamedTuple):
    """Host names whose requests follow the rules of one VirtualService; the first match wins."""

    name: str
    namespace: str
    domains: tuple[str, ...]
    rules: tuple[JsonObject, ...]


class Termination(NamedTuple):
    """A server that decrypts connections to some server names; no name: all others.

    Attributes:
        name: of its routes, as Istio names them.
        number: the port of the gateway's Service.
    """

    names: tuple[str, ...]
    name: str
    number: int
    mode: str
    credential: Credential
    hosts: tuple[Host, ...]


def terminates(server: JsonObject) -> bool:
    """Return whether a Gateway's server decrypts connections and routes requests by HTTP."""
    mode = map_at(server, "tls").get("mode")
    return mode in TERMINATING and map_at(server, "port").get("protocol") == _HTTPS


def terminations(proxy: Proxy, objects: Objects) -> dict[int, list[Termination]]:
    """Return the decrypting servers of a gateway by the port that its pods listen on.

    Leave out servers with an unusable credential; `problems` says why.
    """
    found: dict[int, list[Termination]] = {}
    for server in _terminating(proxy, objects):
        tls = map_at(server.spec, "tls")
        try:
            credential = server_credential(tls, proxy.namespace, objects.secrets)
        except CertificateError:
            continue
        found.setdefault(server.port, []).append(
            Termination(
                names=() if ANY in server.hosts else server.hosts,
                name=_name(server),
                number=server.number,
                mode=tls["mode"],
                credential=credential,
                hosts=tuple(_hosts(server, proxy, objects)),
            )
        )
    return found


def problems(proxy: Proxy, objects: Objects) -> Iterator[str]:
    """Yield a sentence for each decrypting server of a gateway that has no usable credential."""
    for server in _terminating(proxy, objects):
        try:
            server_credential(map_at(server.spec, "tls"), proxy.namespace, objects.secrets)
        except CertificateError as error:
            yield f"Gateway {Key.of(server.gateway)}: {error}"


def _terminating(proxy: Proxy, objects: Objects) -> Iterator[Server]:
    return (server for server in servers(proxy, objects) if terminates(server.spec))


def _name(server: Server) -> str:
    port = map_at(server.spec, "port").get("name", "")
    gateway = Key.of(server.gateway)
    return f"https.{server.number}.{port}.{gateway.name}.{gateway.namespace}"


def _hosts(server: Server, proxy: Proxy, objects: Objects) -> Iterator[Host]:
    """Yield the hosts of VirtualServices, each domain once, because Envoy accepts it only once."""
    taken: set[str] = set()
    for found in virtual_services(server, proxy, objects):
        key = Key(metadata_of(found)["namespace"], metadata_of(found)["name"])
        rules = tuple(maps_at(found, "spec", "http"))
        domains = tuple(
            domain
            for domain in dict.fromkeys(_domains(server, found, key.namespace))
            if domain not in taken
        )
        if rules and domains:
            taken.update(domains)
            yield Host(str(key), key.namespace, domains, rules)


def _domains(server: Server, virtual_service: JsonObject, namespace: str) -> Iterator[str]:
    for host in map_at(virtual_service, "spec").get("hosts", []):
        if host == ANY:
            yield from server.hosts
        elif server.admits(host, namespace):
            yield host
