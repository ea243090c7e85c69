"""The policies of one namespace: pure functions of its labels and the networks (spec 21 §5.5)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Final

from pergola.api.ip_ranges import Address, Network, parse_address, parse_network
from pergola.api.objects import JsonObject
from pergola.kube.selectors import matches
from pergola.manifests import KUBE_SYSTEM, manifest

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
