"""The NetworkPolicies of namespaces that belong to a garden (spec 21 §5.5).

They deny all connections, and allow those to DNS, to the runtime cluster's API server, and, for
labelled pods, to public, private and blocked networks. The resource manager adds those between
Services.
"""

import asyncio
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from pergola.api.ip_ranges import Address, Network, is_network, parse_address, parse_network
from pergola.api.kinds import ENDPOINT_SLICE, NAMESPACE, NETWORK_POLICY
from pergola.api.objects import (
    JsonObject,
    Key,
    deletion_timestamp_of,
    labels_of,
    map_at,
    maps_at,
    uid_of,
)
from pergola.api.operator_v1alpha1 import GARDEN, garden_from
from pergola.api.operator_v1alpha1.runtime_cluster import RuntimeNetworking
from pergola.kube.applied import has_manager, is_applied
from pergola.kube.errors import ApiError, NotFound
from pergola.kube.selectors import matches
from pergola.manifests import KUBE_SYSTEM, manifest
from pergola.operator.copies import Copies
from pergola.operator.oldest import seniority
from pergola.operator.run.direct import MANAGER
from pergola.runtime.caching.cache import Cache
from pergola.runtime.caching.view import View
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Events, Watch, changed
from pergola.runtime.metrics import Metrics

DENY_ALL: Final = "deny-all"
TO_RUNTIME_API_SERVER: Final = "allow-to-runtime-apiserver"
TO_PUBLIC: Final = "allow-to-public-networks"
TO_PRIVATE: Final = "allow-to-private-networks"
TO_BLOCKED: Final = "allow-to-blocked-cidrs"
TO_DNS: Final = "allow-to-dns"
NAMES: Final = frozenset(
    {DENY_ALL, TO_RUNTIME_API_SERVER, TO_PUBLIC, TO_PRIVATE, TO_BLOCKED, TO_DNS}
)

_ROLE: Final = "gardener.cloud/role"
_HANDLER: Final = "handler.exposureclass.gardener.cloud/name"
_GARDEN: Final = "garden"
_TO_NETWORKS: Final = ("shoot", "extension")
_TO_CLUSTER: Final = (*_TO_NETWORKS, "istio-system", "istio-ingress")
_PRIVATE: Final = tuple(
    map(
        parse_network,
        ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fe80::/10", "fc00::/7"),
    )
)
_ALL: Final = (parse_network("0.0.0.0/0"), parse_network("::/0"))
_DNS_PORTS: Final = (53, 8053)
_DNS_OFFSET: Final = 10
_NODE_LOCAL_DNS: Final = "169.254.20.10"
_DNS_PODS: Final = ("kube-dns", "node-local-dns", "coredns")


@dataclass(frozen=True, slots=True)
class Networks:
    """The networks of the runtime cluster.

    Attributes:
        own: The networks of its nodes, pods and Services.
        services: The networks of its Services.
        blocked: The networks that pods must not reach.
        api_server: The addresses and ports of its API server.
        selectors: Label selectors for additional namespaces with all policies.
    """

    own: tuple[Network, ...]
    services: tuple[Network, ...]
    blocked: tuple[Network, ...] = ()
    api_server: tuple[JsonObject, ...] = ()
    selectors: tuple[JsonObject, ...] = ()


def policies(namespace: str, labels: Mapping[str, str], networks: Networks) -> list[JsonObject]:
    """Return the policies of a namespace; none if it does not belong to the garden.

    Args:
        labels: Of the namespace.
    """
    names = policy_names(namespace, labels, networks.selectors)
    found = [_policy(namespace, name, networks) for name in sorted(names)]
    return [policy for policy in found if policy is not None]


def policy_names(
    namespace: str, labels: Mapping[str, str], selectors: Iterable[JsonObject]
) -> frozenset[str]:
    """Return the names of a namespace's policies."""
    role = labels.get(_ROLE)
    if namespace == _GARDEN or role in _TO_NETWORKS:
        return NAMES
    if any(matches(selector, labels) for selector in selectors):
        return NAMES
    if role in _TO_CLUSTER:
        return frozenset({DENY_ALL, TO_DNS, TO_RUNTIME_API_SERVER})
    return frozenset({DENY_ALL, TO_DNS}) if _HANDLER in labels else frozenset()


def _policy(namespace: str, name: str, networks: Networks) -> JsonObject | None:
    if name == DENY_ALL:
        spec: JsonObject = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
        return _manifest(namespace, name, spec)
    egress = list(_EGRESS[name](networks))
    if not egress:
        return None
    label = f"networking.gardener.cloud/{name.removeprefix('allow-')}"
    pods = {"matchLabels": {label: "allowed"}}
    spec = {"podSelector": pods, "policyTypes": ["Egress"], "egress": egress}
    return _manifest(namespace, name, spec)


def _manifest(namespace: str, name: str, spec: JsonObject) -> JsonObject:
    return manifest("networking.k8s.io/v1", "NetworkPolicy", name, namespace=namespace, spec=spec)


def _to_api_server(networks: Networks) -> Iterator[JsonObject]:
    yield from networks.api_server


def _to_public(networks: Networks) -> Iterator[JsonObject]:
    yield {"to": [_block(each, (*_PRIVATE, *networks.blocked)) for each in _ALL]}


def _to_private(networks: Networks) -> Iterator[JsonObject]:
    yield {"to": [_block(each, (*networks.own, *networks.blocked)) for each in _PRIVATE]}


def _to_blocked(networks: Networks) -> Iterator[JsonObject]:
    if networks.blocked:
        yield {"to": [_block(each) for each in networks.blocked]}


def _to_dns(networks: Networks) -> Iterator[JsonObject]:
    system = {"matchLabels": {"kubernetes.io/metadata.name": KUBE_SYSTEM}}
    pods = {"matchExpressions": [{"key": "k8s-app", "operator": "In", "values": list(_DNS_PODS)}]}
    peers: list[JsonObject] = [{"namespaceSelector": system, "podSelector": pods}]
    peers += [_block(address) for address in _dns_addresses(networks.services)]
    ports = [{"protocol": each, "port": port} for port in _DNS_PORTS for each in ("UDP", "TCP")]
    yield {"to": peers, "ports": ports}


def _dns_addresses(services: Iterable[Network]) -> Iterator[Network]:
    """Yield the addresses of the cluster's DNS, and of its cache on every node."""
    for network in services:
        yield _single(network.network_address + _DNS_OFFSET)
    yield _single(parse_address(_NODE_LOCAL_DNS))


def _single(address: Address) -> Network:
    return parse_network(f"{address}/{address.max_prefixlen}")


def _block(network: Network, excluded: Iterable[Network] = ()) -> JsonObject:
    """Return a network as a peer, except for some parts of it."""
    parts = [each for each in excluded if _is_part(each, network)]
    block: JsonObject = {"cidr": str(network)}
    if parts:
        block["except"] = sorted({str(each) for each in parts})
    return {"ipBlock": block}


def _is_part(part: Network, whole: Network) -> bool:
    if isinstance(part, IPv4Network) and isinstance(whole, IPv4Network):
        return part != whole and part.subnet_of(whole)
    if isinstance(part, IPv6Network) and isinstance(whole, IPv6Network):
        return part != whole and part.subnet_of(whole)
    return False


_EGRESS: Final[dict[str, Callable[[Networks], Iterator[JsonObject]]]] = {
    TO_RUNTIME_API_SERVER: _to_api_server,
    TO_PUBLIC: _to_public,
    TO_PRIVATE: _to_private,
    TO_BLOCKED: _to_blocked,
    TO_DNS: _to_dns,
}


def to_endpoints(addresses: Iterable[str], ports: Iterable[int]) -> tuple[JsonObject, ...]:
    """Return the egress rule to an API server; empty without addresses.

    Args:
        addresses: IP addresses.
        ports: TCP ports.
    """
    peers = [_block(_single(each)) for each in sorted(map(parse_address, set(addresses)), key=str)]
    if not peers:
        return ()
    open_ports = [{"protocol": "TCP", "port": port} for port in sorted(set(ports))]
    return ({"to": peers, "ports": open_ports},)


NAME: Final = "networkpolicy"

_API_SERVER: Final = Key("default", "kubernetes")
_OF_SERVICES: Final = "networking.resources.gardener.cloud/service-name"
_RESOLVE_SECONDS: Final = 30.0
_HTTPS: Final = 443


class SeenNamespace(NamedTuple):
    """The facts about a namespace that determine its policies."""

    labels: tuple[tuple[str, str], ...]
    is_active: bool


class _SeenGarden(NamedTuple):
    """The networks of a Garden, and its age relative to other Gardens."""

    seniority: tuple[str, str]
    networking: RuntimeNetworking


class _Endpoints(NamedTuple):
    """Addresses and ports of an API server."""

    addresses: frozenset[str]
    ports: frozenset[int]


class NamespacePolicies:
    """Applies the policies of namespaces while a Garden exists.

    Args:
        selectors: Label selectors for additional namespaces.
        server: The URL of the runtime cluster's API server, as the operator reaches it.
    """

    def __init__(self, copies: Copies, selectors: Iterable[JsonObject], server: str) -> None:
        client = copies.client
        self.namespaces = View(copies.of(NAMESPACE), _namespace)
        self.gardens = View(copies.of(GARDEN), _garden)
        self.policies = Cache(client, NETWORK_POLICY, _stored_policy, labels=f"!{_OF_SERVICES}")
        self.endpoints = Cache(client, ENDPOINT_SLICE, _endpoints, namespace=_API_SERVER.namespace)
        self.resolved: Events[None] = Events()
        self._client = client
        self._selectors = tuple(selectors)
        self._server = urlsplit(server)
        self._addresses: frozenset[str] | None = None

    def every_namespace(self, event: object) -> list[str]:
        """Return the names of all namespaces, for events that affect all of them."""
        del event
        return [key.name for key, _ in self.namespaces.items()]

    async def reconcile(self, namespace: str) -> Outcome:
        """Write the policies that a namespace lacks; delete those that it should not have.

        In other namespaces, a policy with the name of one of ours is kept: it belongs to a user.

        Raises:
            KubeError: The API server refused, or did not answer.
        """
        seen = self.namespaces.get(Key("", namespace))
        networks = self._networks()
        if seen is None or not seen.is_active or networks is None:
            return DONE
        desired = {Key.of(it): it for it in policies(namespace, dict(seen.labels), networks)}
        for key, policy in desired.items():
            live = self.policies.get(key)
            if live is None or not is_applied(policy, live, MANAGER):
                await self._apply(policy)
        for name in NAMES:
            key = Key(namespace, name)
            live = self.policies.get(key)
            if live is not None and key not in desired and has_manager(live, MANAGER):
                await self._client.delete(NETWORK_POLICY, key, uid=uid_of(live))
        return DONE

    async def _apply(self, policy: JsonObject) -> None:
        try:
            await self._client.apply(policy, manager=MANAGER, force=True)
        except ApiError as error:
            if not _is_gone(error):
                raise

    async def resolve(self) -> None:
        """Look up the API server's addresses every 30 seconds, until cancelled."""
        while True:
            with suppress(OSError):
                found = await asyncio.get_running_loop().getaddrinfo(
                    self._server.hostname, None, type=socket.SOCK_STREAM
                )
                addresses = frozenset(str(entry[4][0]) for entry in found)
                if addresses != self._addresses:
                    self._addresses = addresses
                    self.resolved.notify(None)
            await asyncio.sleep(_RESOLVE_SECONDS)

    def _networks(self) -> Networks | None:
        """Return the networks; None without a valid Garden, or before the first lookup.

        The status of an invalid Garden has the reason. Until it is corrected, policies stay.
        """
        gardens = [seen for _, seen in self.gardens.items()]
        networking = min(gardens).networking if gardens else None
        if networking is None or self._addresses is None or not _is_valid(networking):
            return None
        services = tuple(map(parse_network, networking.services))
        own = (*networking.nodes, *networking.pods)
        return Networks(
            own=(*map(parse_network, own), *services),
            services=services,
            blocked=tuple(map(parse_network, networking.block_cidrs)),
            api_server=self._api_server(self._addresses),
            selectors=self._selectors,
        )

    def _api_server(self, resolved: frozenset[str]) -> tuple[JsonObject, ...]:
        slices = [found for _, found in self.endpoints.items()]
        addresses = resolved.union(*(each.addresses for each in slices))
        ports = {self._server.port or _HTTPS}.union(*(each.ports for each in slices))
        return to_endpoints(addresses, ports)


def _is_gone(error: ApiError) -> bool:
    """Return whether an object cannot be created because its namespace is gone or terminating."""
    return isinstance(error, NotFound) or error.is_namespace_terminating


def _is_valid(networking: RuntimeNetworking) -> bool:
    ranges = (*networking.nodes, *networking.pods, *networking.services, *networking.block_cidrs)
    return all(map(is_network, ranges))


def network_policies(
    copies: Copies,
    selectors: Iterable[JsonObject],
    server: str,
    *,
    workers: int,
    metrics: Metrics,
) -> Unit:
    """Return the controller; see `NamespacePolicies`."""
    reconciler = NamespacePolicies(copies, selectors, server)
    every = reconciler.every_namespace
    return Controller(
        NAME,
        reconciler.reconcile,
        watches=[
            Watch(reconciler.namespaces, to=lambda change: (change.key.name,), when=changed),
            Watch(reconciler.policies, to=lambda change: (change.key.namespace,)),
            Watch(reconciler.gardens, to=every, when=changed),
            Watch(reconciler.endpoints, to=every, when=changed),
            Watch(reconciler.resolved, to=every),
        ],
        workers=workers,
        metrics=metrics,
        tasks=[reconciler.resolve],
    )


def _namespace(obj: JsonObject) -> SeenNamespace:
    is_active = map_at(obj, "status").get("phase") == "Active"
    deleted = deletion_timestamp_of(obj) is not None
    return SeenNamespace(tuple(sorted(labels_of(obj).items())), is_active and not deleted)


def _garden(garden: JsonObject) -> _SeenGarden:
    return _SeenGarden(seniority(garden), garden_from(garden).spec.runtime_cluster.networking)


def _stored_policy(obj: JsonObject) -> JsonObject | None:
    """Return a policy that may be ours; others are not kept."""
    return obj if Key.of(obj).name in NAMES else None


def _endpoints(obj: JsonObject) -> _Endpoints:
    if labels_of(obj).get("kubernetes.io/service-name") != _API_SERVER.name:
        return _Endpoints(frozenset(), frozenset())
    addresses = {
        str(address) for each in maps_at(obj, "endpoints") for address in each.get("addresses", ())
    }
    ports = {int(each["port"]) for each in maps_at(obj, "ports") if each.get("port")}
    return _Endpoints(frozenset(addresses), frozenset(ports))
