"""The effect of NetworkPolicies: whether a pod can reach another one on a port.

For tests of the effect of policies, rather than of their text, without a network plugin:

    network = Network(namespaces={"shop": {}, "pay": {"team": "b"}}, policies=policies)
    assert network.may_reach(Pod("pay", {"app": "till"}), Pod("shop", {"app": "web"}), "TCP", 8080)

The rules are those of the API documentation of `networking.k8s.io/v1` NetworkPolicy. Where plugins
differ, nothing is promised: `ipBlock` matches addresses outside the cluster only, and nodes and
pods on the host's network are ignored.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from pergola.api.objects import JsonObject, Key, labels_of, map_at, maps_at, namespace_of
from pergola.kube.selectors import matches

Direction: TypeAlias = Literal["Ingress", "Egress"]
Protocol: TypeAlias = Literal["TCP", "UDP", "SCTP"]


class NamedPort(NamedTuple):
    """The name of a container port, which may have a different number in each protocol."""

    name: str
    protocol: str


@dataclass(frozen=True, slots=True)
class Pod:
    """The properties of a pod that NetworkPolicies use."""

    namespace: str
    labels: Mapping[str, str]
    ports: Mapping[NamedPort, int] = field(default_factory=dict)
    """The numbers of its named container ports."""

    @classmethod
    def of(cls, obj: JsonObject) -> "Pod":
        """Read a manifest."""
        containers = [*maps_at(obj, "spec", "initContainers"), *maps_at(obj, "spec", "containers")]
        ports = {
            NamedPort(port["name"], port.get("protocol") or "TCP"): port["containerPort"]
            for container in containers
            for port in maps_at(container, "ports")
            if port.get("name")
        }
        return cls(namespace_of(obj), labels_of(obj), ports)


@dataclass(frozen=True, slots=True)
class Outside:
    """Something outside the cluster, such as a client on the internet."""

    address: str = "203.0.113.1"


Endpoint: TypeAlias = Pod | Outside


class Verdict(NamedTuple):
    """A verdict about a connection in one direction, and the deciding policies.

    Without `isolating` policies everything is allowed; with them, only what one of the `allowing`
    ones lets through.
    """

    isolating: tuple[Key, ...]
    allowing: tuple[Key, ...]

    @property
    def is_allowed(self) -> bool:
        """Whether this direction allows the connection."""
        return not self.isolating or bool(self.allowing)


class Network:
    """Namespaces and the NetworkPolicies in them.

    Args:
        namespaces: the labels of each. The API server's own label with the name is added.
        policies: manifests of NetworkPolicies.
    """

    def __init__(
        self, namespaces: Mapping[str, Mapping[str, str]], policies: Iterable[JsonObject]
    ) -> None:
        self._namespaces = {
            name: {"kubernetes.io/metadata.name": name, **labels}
            for name, labels in namespaces.items()
        }
        self._policies: dict[str, list[JsonObject]] = {}
        for policy in policies:
            self._policies.setdefault(namespace_of(policy), []).append(policy)

    def may_reach(self, source: Endpoint, target: Endpoint, protocol: Protocol, port: int) -> bool:
        """Return whether a connection from `source` to a port of `target` can be opened.

        It can if egress at the source and ingress at the target allow it, and always from a pod to
        itself. Replies belong to their connection, so that only the opening side matters.
        """
        return all(
            self.verdict(direction, source, target, protocol, port).is_allowed
            for direction in _DIRECTIONS
        )

    def verdict(
        self,
        direction: Direction,
        source: Endpoint,
        target: Endpoint,
        protocol: Protocol,
        port: int,
    ) -> Verdict:
        """Return the verdict of the policies at one end; `Ingress` is judged at the target."""
        end, peer = (target, source) if direction == "Ingress" else (source, target)
        if end is peer or not isinstance(end, Pod):
            return Verdict((), ())
        connection = _Connection(peer, target, protocol, port)
        isolating = list(self._isolating(direction, end))
        allowing = [policy for policy in isolating if self._allows(policy, direction, connection)]
        return Verdict(tuple(map(Key.of, isolating)), tuple(map(Key.of, allowing)))

    def _isolating(self, direction: Direction, pod: Pod) -> Iterator[JsonObject]:
        """Yield the policies that select the pod, and so deny what none of them allows."""
        for policy in self._policies.get(pod.namespace, ()):
            if direction in _directions(policy) and matches(
                map_at(policy, "spec", "podSelector"), pod.labels
            ):
                yield policy

    def _allows(self, policy: JsonObject, direction: Direction, connection: "_Connection") -> bool:
        return any(
            self._lets_pass(rule, direction, namespace_of(policy), connection)
            for rule in maps_at(policy, "spec", direction.lower())
        )

    def _lets_pass(
        self, rule: JsonObject, direction: Direction, namespace: str, connection: "_Connection"
    ) -> bool:
        """Return whether a rule matches; an absent or empty list matches every peer or port."""
        peers = maps_at(rule, "from" if direction == "Ingress" else "to")
        ports = maps_at(rule, "ports")
        return (not ports or any(_is_port(port, connection) for port in ports)) and (
            not peers or any(self._is_peer(peer, namespace, connection.peer) for peer in peers)
        )

    def _is_peer(self, peer: JsonObject, namespace: str, end: Endpoint) -> bool:
        """Return whether a peer matches; by default it is in the policy's namespace."""
        if isinstance(end, Outside):
            return _contains(map_at(peer, "ipBlock"), end.address)
        if "ipBlock" in peer:
            return False
        namespaces, pods = peer.get("namespaceSelector"), peer.get("podSelector")
        if namespaces is None and pods is None:
            return False  # the API server refuses such a peer
        there = (
            end.namespace == namespace
            if namespaces is None
            else matches(namespaces, self._namespaces.get(end.namespace, {}))
        )
        return there and (pods is None or matches(pods, end.labels))


_DIRECTIONS: tuple[Direction, ...] = ("Egress", "Ingress")


class _Connection(NamedTuple):
    peer: Endpoint
    target: Endpoint
    protocol: str
    port: int


def _directions(policy: JsonObject) -> list[str]:
    """Return the directions of a policy; egress by default only if it has egress rules."""
    spec = map_at(policy, "spec")
    return spec.get("policyTypes") or (["Ingress", "Egress"] if spec.get("egress") else ["Ingress"])


def _is_port(port: JsonObject, connection: _Connection) -> bool:
    """Return the number of a port; the called pod defines what a name means, in both directions."""
    if (port.get("protocol") or "TCP") != connection.protocol:
        return False
    first = port.get("port")
    if first is None:
        return True
    if isinstance(first, str):
        named = connection.target.ports if isinstance(connection.target, Pod) else {}
        return named.get(NamedPort(first, connection.protocol)) == connection.port
    return bool(first <= connection.port <= (port.get("endPort") or first))


def _contains(block: JsonObject, address: str) -> bool:
    if not block:
        return False
    ip = ipaddress.ip_address(address)
    return ip in ipaddress.ip_network(block["cidr"]) and not any(
        ip in ipaddress.ip_network(left_out) for left_out in block.get("except") or ()
    )
