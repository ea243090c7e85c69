"""The desired rules of the managed security group, and their ranges (spec 30 §6.1). Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from pergola.api.ip_ranges import parse_network
from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.flow import State
from pergola.providers.aws.config import Zone
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources.security_group.rules import (
    ALL,
    EGRESS,
    EVERYWHERE,
    EVERYWHERE_6,
    INGRESS,
    NFS,
    NODE_PORTS,
    TCP,
    UDP,
    Rule,
    canonical,
)
from pergola.providers.aws.snapshot import Snapshot
from pergola.providers.aws.state import (
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

_CLUSTER_TAGS: Final = "kubernetes.io/cluster/"
_SUBNETS_OF_A_ZONE: Final = 3


class Ranges(NamedTuple):
    """The CIDRs of a zone's subnets in both IP families, as far as known."""

    workers: tuple[str, ...] = ()
    internal: tuple[str, ...] = ()
    public: tuple[str, ...] = ()


def desired_rules(desired: Desired, group: str, zones: Iterable[Ranges]) -> frozenset[Rule]:
    """Return the rules of the managed group (§6.1).

    Args:
        group: the id of the group itself.
    """
    rules = set(_base(desired, group))
    for ranges in zones:
        rules.update(_of_zone(desired, ranges))
    return frozenset(rules)


def zone_ranges(desired: Desired, state: State, snapshot: Snapshot) -> list[Ranges]:
    """Return the CIDRs of each zone of the config, in the Shoot's IP families.

    Subnets of an IPv4 cluster may have IPv6 ranges as well: by `dualStack`, or those of the user.
    For created subnets, they come from the config, and for IPv6 from the subnets or, before these
    exist, from the VPC's block; for user-provided subnets, they come from the state.
    """
    return [
        _byo(desired, state, zone)
        if zone.workers_subnet_id
        else _created(desired, state, snapshot, zone, index)
        for index, zone in enumerate(desired.config.networks.zones)
    ]


def bastion_groups(desired: Desired, groups: Mapping[str, JsonObject]) -> frozenset[str]:
    """Return the ids of the groups that belong to bastions of this cluster."""
    return frozenset(name for name, group in groups.items() if _is_bastions(desired, group))


def _is_bastions(desired: Desired, group: JsonObject) -> bool:
    name = str(group.get("GroupName"))
    if not (name.startswith(f"{desired.technical_id}-") and name.endswith("-bsg")):
        return False
    # The name of another cluster may start with that of this one.
    owners = {key for key in tags_of(group) if key.startswith(_CLUSTER_TAGS)}
    return owners <= {desired.cluster_tag}


def _base(desired: Desired, group: str) -> Iterator[Rule]:
    yield Rule(INGRESS, ALL, None, group)
    everywhere = [
        *([EVERYWHERE] if desired.ipv4 else []),
        *([EVERYWHERE_6] if desired.ipv6 else []),
    ]
    for peer in everywhere:
        yield Rule(INGRESS, TCP, NODE_PORTS, peer)
        yield Rule(INGRESS, UDP, NODE_PORTS, peer)
        yield Rule(EGRESS, ALL, None, peer)
    # Elastic Fabric Adapters do not use IP, so no range covers their peers.
    if desired.uses_efa:
        yield Rule(EGRESS, ALL, None, group)


def _of_zone(desired: Desired, ranges: Ranges) -> Iterator[Rule]:
    for peer in (*ranges.internal, *ranges.public):
        yield Rule(INGRESS, TCP, NODE_PORTS, peer)
        yield Rule(INGRESS, UDP, NODE_PORTS, peer)
    if desired.config.wants_efs:
        for peer in ranges.workers:
            yield Rule(INGRESS, TCP, NFS, peer)


def _created(desired: Desired, state: State, snapshot: Snapshot, zone: Zone, index: int) -> Ranges:
    def of(cidr: str | None, key: str, offset: int) -> tuple[str, ...]:
        subnet = snapshot.subnets.get(state.get(zone_key(zone.name, key)) or "")
        block = state.get(VPC_IPV6_BLOCK)
        number = _SUBNETS_OF_A_ZONE * index + offset
        return _known(desired, cidr, _range6(subnet) or _nth_64(block, number) if block else None)

    has_workers = bool(zone.workers) or not desired.ipv4
    return Ranges(
        of(zone.workers, SUBNET_WORKERS, 0) if has_workers else (),
        of(zone.internal, SUBNET_INTERNAL, 1) if zone.internal else (),
        of(zone.public, SUBNET_PUBLIC, 2) if zone.public else (),
    )


def _byo(desired: Desired, state: State, zone: Zone) -> Ranges:
    def of(key: str, key6: str) -> tuple[str, ...]:
        return _known(desired, *(state.get(zone_key(zone.name, each)) for each in (key, key6)))

    return Ranges(
        of(SUBNET_WORKERS_CIDR, SUBNET_WORKERS_IPV6_CIDR),
        of(SUBNET_INTERNAL_CIDR, SUBNET_INTERNAL_IPV6_CIDR),
        of(SUBNET_PUBLIC_CIDR, SUBNET_PUBLIC_IPV6_CIDR),
    )


def _known(desired: Desired, cidr: str | None, cidr6: str | None) -> tuple[str, ...]:
    """Return the ranges in the Shoot's families, as far as known."""
    of_families = (cidr if desired.ipv4 else None, cidr6 if desired.ipv6 else None)
    return tuple(canonical(each) for each in of_families if each)


def _range6(subnet: JsonObject | None) -> str | None:
    for each in (subnet or {}).get("Ipv6CidrBlockAssociationSet") or ():
        if (each.get("Ipv6CidrBlockState") or {}).get("State") in (None, "associated"):
            return str(each["Ipv6CidrBlock"])
    return None


def _nth_64(block: str, number: int) -> str:
    network = parse_network(block)
    first = int(network.network_address) + (number << 64)
    return f"{type(network.network_address)(first)}/64"
