"""The rules of the nodes' security group: which there should be, and what differs (spec 30 §6).

Pure. AWS describes rules in permissions of several peers each; here each rule has one peer, so that
sets of them can be compared. A rule that this does not cover is kept as AWS's own JSON.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import orjson

from pergola.api.ip_ranges import parse_network
from pergola.api.objects import JsonObject
from pergola.flow import State
from pergola.providers.aws.config import Zone
from pergola.providers.aws.snapshot import Snapshot, tags_of
from pergola.providers.aws.state import (
    NODES_SECURITY_GROUP,
    SUBNET_INTERNAL,
    SUBNET_INTERNAL_CIDR,
    SUBNET_INTERNAL_IPV6_CIDR,
    SUBNET_PUBLIC,
    SUBNET_PUBLIC_CIDR,
    SUBNET_PUBLIC_IPV6_CIDR,
    SUBNET_WORKERS,
    SUBNET_WORKERS_CIDR,
    SUBNET_WORKERS_IPV6_CIDR,
    VPC_IPV6_BLOCK,
    zone_key,
)
from pergola.providers.aws.wanted import Wanted

Direction = Literal["ingress", "egress"]
Ports = tuple[int, int]

INGRESS: Final = "ingress"
EGRESS: Final = "egress"
ALL: Final = "-1"
TCP: Final = "tcp"
UDP: Final = "udp"
NODE_PORTS: Final[Ports] = (30000, 32767)
NFS: Final[Ports] = (2049, 2049)
SSH: Final[Ports] = (22, 22)
EVERYWHERE: Final = "0.0.0.0/0"
EVERYWHERE_6: Final = "::/0"
FIELDS: Final[Mapping[Direction, str]] = {
    INGRESS: "IpPermissions",
    EGRESS: "IpPermissionsEgress",
}
"""Where AWS tells the rules of a direction."""
_RANGES: Final = (("IpRanges", "CidrIp"), ("Ipv6Ranges", "CidrIpv6"))
_GROUPS: Final = "UserIdGroupPairs"
_KNOWN: Final = frozenset({"IpProtocol", "FromPort", "ToPort", "IpRanges", "Ipv6Ranges", _GROUPS})
_CLUSTER_TAGS: Final = "kubernetes.io/cluster/"
_SUBNETS_OF_A_ZONE: Final = 3


class Rule(NamedTuple):
    """One rule with one peer.

    Attributes:
        protocol: `tcp`, `udp`, … or `-1` for all.
        ports: the first and the last; None for all.
        peer: a CIDR, or the id of a security group; AWS's JSON if it is neither.
    """

    direction: Direction
    protocol: str
    ports: Ports | None
    peer: str

    @property
    def is_opaque(self) -> bool:
        """Whether the peer is neither a CIDR nor a security group of the same account."""
        return self.peer.startswith("{")

    @property
    def is_range(self) -> bool:
        """Whether the peer is a CIDR."""
        return not self.is_opaque and "/" in self.peer

    def __str__(self) -> str:
        what = "all traffic" if self.protocol == ALL else self.protocol
        ports = "" if self.ports is None else f" {self.ports[0]}-{self.ports[1]}"
        return f"{self.direction} {what}{ports} {self._preposition} {self.peer}"

    @property
    def _preposition(self) -> str:
        return "from" if self.direction == INGRESS else "to"


class Ranges(NamedTuple):
    """The CIDRs of a zone's subnets, of either family, as far as they are known."""

    workers: tuple[str, ...] = ()
    internal: tuple[str, ...] = ()
    public: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """What has to be written so that a group has its rules."""

    authorize: frozenset[Rule]
    revoke: frozenset[Rule]

    def __bool__(self) -> bool:
        return bool(self.authorize or self.revoke)


def nodes_security_groups(wanted: Wanted, state: State) -> list[str]:
    """All security groups of a node, its own first: for the status, and for workers (§6.5)."""
    networks = wanted.config.networks
    own = networks.nodes_security_group_id or state.get(NODES_SECURITY_GROUP)
    several = [*([own] if own else []), *networks.additional_nodes_security_group_ids]
    return list(dict.fromkeys(several))


def desired_rules(wanted: Wanted, group: str, zones: Iterable[Ranges]) -> frozenset[Rule]:
    """The rules of the managed group (§6.1).

    With additional groups of the user, it has only those that every cluster needs (§6.5).

    Args:
        group: the id of the group itself.
    """
    rules = set(_base(wanted, group))
    if not wanted.config.networks.additional_nodes_security_group_ids:
        for ranges in zones:
            rules.update(_of_zone(wanted, ranges))
    return frozenset(rules)


def zone_ranges(wanted: Wanted, state: State, snapshot: Snapshot) -> list[Ranges]:
    """The CIDRs of each zone of the config.

    Those of subnets that are created come from the config, and for IPv6 from the subnets, or as
    long as there are none from the VPC's block; those of subnets that were brought from the state.
    """
    return [
        _brought(state, zone)
        if zone.workers_subnet_id
        else _created(wanted, state, snapshot, zone, index)
        for index, zone in enumerate(wanted.config.networks.zones)
    ]


def rules_of(group: JsonObject) -> frozenset[Rule]:
    """The rules that a security group has, as AWS describes it."""
    owner = group.get("OwnerId")
    return frozenset(
        rule
        for direction, field in FIELDS.items()
        for permission in group.get(field) or ()
        for rule in _split(direction, permission, owner)
    )


def compare(desired: frozenset[Rule], group: JsonObject, keep: Iterable[str] = ()) -> Changes:
    """What differs.

    Args:
        keep: security groups whose traffic stays allowed, such as those of bastions.
    """
    present, kept = rules_of(group), frozenset(keep)
    return Changes(
        authorize=desired - present,
        revoke=frozenset(rule for rule in present - desired if rule.peer not in kept),
    )


def permissions(rules: Iterable[Rule], direction: Direction) -> list[JsonObject]:
    """The rules of a direction as AWS takes them, in an order that stays."""
    found: dict[tuple[str, Ports | None], JsonObject] = {}
    opaque: list[JsonObject] = []
    for rule in sorted(rules, key=_order):
        if rule.direction != direction:
            continue
        if rule.is_opaque:
            opaque.append(orjson.loads(rule.peer))
            continue
        permission = found.setdefault((rule.protocol, rule.ports), _head(rule))
        field, name = _where(rule.peer)
        permission.setdefault(field, []).append({name: rule.peer})
    return [*found.values(), *opaque]


def bastion_groups(wanted: Wanted, groups: Mapping[str, JsonObject]) -> frozenset[str]:
    """The ids of those groups that belong to bastions of this cluster."""
    return frozenset(name for name, group in groups.items() if _is_bastions(wanted, group))


def _is_bastions(wanted: Wanted, group: JsonObject) -> bool:
    name = str(group.get("GroupName"))
    if not (name.startswith(f"{wanted.technical_id}-") and name.endswith("-bsg")):
        return False
    # The name of another cluster may begin as that of this one.
    owners = {key for key in tags_of(group) if key.startswith(_CLUSTER_TAGS)}
    return owners <= {wanted.cluster_tag}


# What there should be


def _base(wanted: Wanted, group: str) -> Iterator[Rule]:
    yield Rule(INGRESS, ALL, None, group)
    everywhere = [*([EVERYWHERE] if wanted.ipv4 else []), *([EVERYWHERE_6] if wanted.ipv6 else [])]
    for peer in everywhere:
        yield Rule(INGRESS, TCP, NODE_PORTS, peer)
        yield Rule(INGRESS, UDP, NODE_PORTS, peer)
        yield Rule(EGRESS, ALL, None, peer)
    # Such interfaces do not talk IP, so that no range of addresses stands for their peers.
    if wanted.uses_efa:
        yield Rule(EGRESS, ALL, None, group)


def _of_zone(wanted: Wanted, ranges: Ranges) -> Iterator[Rule]:
    for peer in (*ranges.internal, *ranges.public):
        yield Rule(INGRESS, TCP, NODE_PORTS, peer)
        yield Rule(INGRESS, UDP, NODE_PORTS, peer)
    if wanted.config.wants_efs:
        for peer in ranges.workers:
            yield Rule(INGRESS, TCP, NFS, peer)


def _created(wanted: Wanted, state: State, snapshot: Snapshot, zone: Zone, index: int) -> Ranges:
    def of(cidr: str | None, key: str, offset: int) -> tuple[str, ...]:
        subnet = snapshot.subnets.get(state.get(zone_key(zone.name, key)) or "")
        block = state.get(VPC_IPV6_BLOCK) if wanted.needs_ipv6_block else None
        number = _SUBNETS_OF_A_ZONE * index + offset
        return _known(cidr, _range6(subnet) or _nth_64(block, number) if block else None)

    # Nodes with IPv6 only have a subnet without IPv4, whatever the config says (V16).
    workers = zone.workers if wanted.ipv4 else None
    has_workers = bool(zone.workers) or not wanted.ipv4
    return Ranges(
        of(workers, SUBNET_WORKERS, 0) if has_workers else (),
        of(zone.internal, SUBNET_INTERNAL, 1) if zone.internal else (),
        of(zone.public, SUBNET_PUBLIC, 2) if zone.public else (),
    )


def _brought(state: State, zone: Zone) -> Ranges:
    def of(*keys: str) -> tuple[str, ...]:
        return _known(*(state.get(zone_key(zone.name, key)) for key in keys))

    return Ranges(
        of(SUBNET_WORKERS_CIDR, SUBNET_WORKERS_IPV6_CIDR),
        of(SUBNET_INTERNAL_CIDR, SUBNET_INTERNAL_IPV6_CIDR),
        of(SUBNET_PUBLIC_CIDR, SUBNET_PUBLIC_IPV6_CIDR),
    )


def _known(*cidrs: str | None) -> tuple[str, ...]:
    return tuple(_canonical(cidr) for cidr in cidrs if cidr)


def _range6(subnet: JsonObject | None) -> str | None:
    for each in (subnet or {}).get("Ipv6CidrBlockAssociationSet") or ():
        if (each.get("Ipv6CidrBlockState") or {}).get("State") in (None, "associated"):
            return str(each["Ipv6CidrBlock"])
    return None


def _nth_64(block: str, number: int) -> str:
    network = parse_network(block)
    first = int(network.network_address) + (number << 64)
    return f"{type(network.network_address)(first)}/64"


# What there is


def _split(direction: Direction, permission: JsonObject, owner: object) -> Iterator[Rule]:
    protocol = str(permission.get("IpProtocol"))
    ports = _ports(permission)
    for field, name in _RANGES:
        for each in permission.get(field) or ():
            yield Rule(direction, protocol, ports, _canonical(str(each[name])))
    for pair in permission.get(_GROUPS) or ():
        if _is_plain(pair, owner):
            yield Rule(direction, protocol, ports, str(pair["GroupId"]))
        else:
            yield Rule(direction, protocol, ports, _opaque(permission, _GROUPS, pair))
    for field, value in permission.items():
        if field not in _KNOWN:
            several = value if isinstance(value, list) else ()
            for each in several:
                yield Rule(direction, protocol, ports, _opaque(permission, field, each))


def _ports(permission: JsonObject) -> Ports | None:
    first, last = permission.get("FromPort"), permission.get("ToPort")
    if permission.get("IpProtocol") == ALL or first is None or last is None:
        return None
    return int(first), int(last)


def _is_plain(pair: JsonObject, owner: object) -> bool:
    """Whether a peer is said by the id of a group of the same account."""
    if not pair.get("GroupId") or pair.get("VpcPeeringConnectionId"):
        return False
    return owner is None or pair.get("UserId") in (None, "", owner)


def _opaque(permission: JsonObject, field: str, peer: object) -> str:
    if isinstance(peer, dict):
        peer = {key: value for key, value in peer.items() if key != "Description"}
    kept = {
        key: permission[key] for key in ("IpProtocol", "FromPort", "ToPort") if key in permission
    }
    return orjson.dumps({**kept, field: [peer]}, option=orjson.OPT_SORT_KEYS).decode()


def _canonical(cidr: str) -> str:
    """As AWS writes it: without host bits, shortest form."""
    try:
        return str(parse_network(cidr))
    except ValueError:
        return cidr


def _head(rule: Rule) -> JsonObject:
    if rule.ports is None:
        return {"IpProtocol": rule.protocol}
    return {"IpProtocol": rule.protocol, "FromPort": rule.ports[0], "ToPort": rule.ports[1]}


def _where(peer: str) -> tuple[str, str]:
    if "/" not in peer:
        return _GROUPS, "GroupId"
    return ("Ipv6Ranges", "CidrIpv6") if ":" in peer else ("IpRanges", "CidrIp")


def _order(rule: Rule) -> tuple[str, str, Ports, str]:
    return rule.direction, rule.protocol, rule.ports or (-1, -1), rule.peer
