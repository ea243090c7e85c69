"""Rules of security groups as values (spec 30 §6). Pure.

AWS groups rules into permissions with several peers; here, each rule has one peer, so that sets of
rules can be compared. A rule that cannot be represented is kept as AWS's own JSON.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import orjson

from pergola.api.ip_ranges import parse_network
from pergola.api.objects import JsonObject

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
"""AWS's fields for the rules of a direction."""
_RANGES: Final = (("IpRanges", "CidrIp"), ("Ipv6Ranges", "CidrIpv6"))
_GROUPS: Final = "UserIdGroupPairs"
_KNOWN: Final = frozenset({"IpProtocol", "FromPort", "ToPort", "IpRanges", "Ipv6Ranges", _GROUPS})


class Rule(NamedTuple):
    """One rule with one peer.

    Attributes:
        protocol: `tcp`, `udp`, … or `-1` for all.
        ports: the first and the last; None for all.
        peer: a CIDR, or the id of a security group; AWS's JSON otherwise.
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


@dataclass(frozen=True, slots=True)
class Changes:
    """The rules to write."""

    authorize: frozenset[Rule]
    revoke: frozenset[Rule]

    def __bool__(self) -> bool:
        return bool(self.authorize or self.revoke)


def rules_of(group: JsonObject) -> frozenset[Rule]:
    """Return the rules of a security group, as AWS describes it."""
    owner = group.get("OwnerId")
    return frozenset(
        rule
        for direction, field in FIELDS.items()
        for permission in group.get(field) or ()
        for rule in _split(direction, permission, owner)
    )


def compare(desired: frozenset[Rule], group: JsonObject, keep: Iterable[str] = ()) -> Changes:
    """Return the rules to authorize and to revoke.

    Args:
        keep: security groups whose traffic remains allowed, such as those of bastions.
    """
    present, kept = rules_of(group), frozenset(keep)
    return Changes(
        authorize=desired - present,
        revoke=frozenset(rule for rule in present - desired if rule.peer not in kept),
    )


def permissions(rules: Iterable[Rule], direction: Direction) -> list[JsonObject]:
    """Return the rules of a direction in AWS's format, in a stable order."""
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


def _split(direction: Direction, permission: JsonObject, owner: object) -> Iterator[Rule]:
    protocol = str(permission.get("IpProtocol"))
    ports = _ports(permission)
    for field, name in _RANGES:
        for each in permission.get(field) or ():
            yield Rule(direction, protocol, ports, canonical(str(each[name])))
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
    """Return whether a peer is named by the id of a group of the same account."""
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


def canonical(cidr: str) -> str:
    """Return a CIDR in AWS's notation: without host bits, in its shortest form."""
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
