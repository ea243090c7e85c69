"""Checks of managed subnets' ranges in a user-provided VPC (spec 30 §5 L5, §3.5)."""

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network

from pergola.api.field_errors import invalid
from pergola.api.ip_ranges import parse_network
from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.preflight.finding import VPC_ID, Finding, ec2, zone_path
from pergola.providers.aws.preflight.vpc import ipv6_blocks
from pergola.providers.aws.resources.subnets.desired import Subnet, subnets_of
from pergola.providers.aws.resources.subnets.ipv6_ranges import (
    ipv6_range_of,
    places_in,
    places_taken,
)
from pergola.providers.aws.snapshot import Snapshot

Network = IPv4Network | IPv6Network


def check(desired: Desired, snapshot: Snapshot) -> Iterator[Finding]:
    """Yield findings about ranges outside all ranges of the VPC, and too few IPv6 ranges."""
    vpc = snapshot.vpc
    if vpc is None or not desired.config.byo_vpc:
        return
    blocks = ipv4_blocks(vpc)
    for index, zone in enumerate(desired.config.networks.zones):
        for field, cidr in (
            ("workers", zone.workers),
            ("public", zone.public),
            ("internal", zone.internal),
        ):
            if cidr and not is_inside(cidr, blocks):
                text = f"must be inside a range of VPC {vpc['VpcId']}: {', '.join(blocks)}"
                command = f"associate-vpc-cidr-block --vpc-id {vpc['VpcId']} --cidr-block {cidr}"
                cause = invalid(zone_path(index, field), cidr, text)
                yield Finding(cause, ec2(desired, command))
    if desired.needs_ipv6_block and ipv6_blocks(vpc):
        yield from _free_ipv6_ranges(desired, snapshot, vpc)


def _free_ipv6_ranges(desired: Desired, snapshot: Snapshot, vpc: JsonObject) -> Iterator[Finding]:
    """Check that a block of the VPC has a free /64 for each subnet that still needs one."""
    name = str(vpc["VpcId"])
    there = [each for each in snapshot.subnets.values() if each.get("VpcId") == name]
    subnets = [each for zone in desired.config.networks.zones for each in subnets_of(desired, zone)]
    missing = [each for each in subnets if not any(_is(desired, each, one) for one in there)]
    free = {block: places_in(block) - len(places_taken(block, there)) for block in ipv6_blocks(vpc)}
    if len(missing) > max(free.values()):
        said = ", ".join(f"{block} has {count}" for block, count in free.items())
        text = f"{len(missing)} subnets need a free IPv6 /64 each, but {said}"
        command = f"associate-vpc-cidr-block --vpc-id {name} --amazon-provided-ipv6-cidr-block"
        yield Finding(invalid(VPC_ID, name, text), ec2(desired, command))


def _is(desired: Desired, subnet: Subnet, thing: JsonObject) -> bool:
    """Return whether a subnet of AWS is the desired one and has its IPv6 range."""
    same = thing.get("AvailabilityZone") == subnet.zone and (
        thing.get("Ipv6Native") is True if subnet.native else thing.get("CidrBlock") == subnet.cidr
    )
    return same and desired.owns(tags_of(thing)) and ipv6_range_of(thing) is not None


def ipv4_blocks(vpc: JsonObject) -> list[str]:
    """Return all IPv4 ranges of a VPC, the primary one first."""
    associated = [
        str(each["CidrBlock"])
        for each in vpc.get("CidrBlockAssociationSet") or ()
        if (each.get("CidrBlockState") or {}).get("State") == "associated"
    ]
    return list(dict.fromkeys([str(vpc["CidrBlock"]), *associated]))


def is_inside(cidr: str, blocks: list[str]) -> bool:
    """Return whether a range is contained in one of several others; an invalid CIDR never is."""
    inner = _network(cidr)
    return inner is not None and any(_contains(_network(block), inner) for block in blocks)


def overlap(one: str, other: str) -> bool:
    """Return whether two ranges have an address in common; an invalid CIDR has none."""
    first, second = _network(one), _network(other)
    return (
        first is not None
        and second is not None
        and first.version == second.version
        and first.overlaps(second)
    )


def _contains(outer: Network | None, inner: Network) -> bool:
    if isinstance(outer, IPv4Network) and isinstance(inner, IPv4Network):
        return inner.subnet_of(outer)
    if isinstance(outer, IPv6Network) and isinstance(inner, IPv6Network):
        return inner.subnet_of(outer)
    return False


def _network(cidr: str) -> Network | None:
    try:
        return parse_network(cidr)
    except ValueError:
        return None
