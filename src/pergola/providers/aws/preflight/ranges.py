"""Checks of managed subnets' ranges in a user-provided VPC (spec 30 §5 L5)."""

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network

from pergola.api.field_errors import invalid
from pergola.api.ip_ranges import parse_network
from pergola.api.objects import JsonObject
from pergola.providers.aws.preflight.finding import Finding, ec2, zone_path
from pergola.providers.aws.snapshot import Snapshot
from pergola.providers.aws.wanted import Wanted

Network = IPv4Network | IPv6Network


def check(wanted: Wanted, snapshot: Snapshot) -> Iterator[Finding]:
    """Yield findings about ranges outside all ranges of the VPC."""
    vpc = snapshot.vpc
    if vpc is None or not wanted.config.byo_vpc:
        return
    blocks = ipv4_blocks(vpc)
    for index, zone in enumerate(wanted.config.networks.zones):
        for field, cidr in (
            ("workers", zone.workers),
            ("public", zone.public),
            ("internal", zone.internal),
        ):
            if cidr and not is_inside(cidr, blocks):
                text = f"must be inside a range of VPC {vpc['VpcId']}: {', '.join(blocks)}"
                command = f"associate-vpc-cidr-block --vpc-id {vpc['VpcId']} --cidr-block {cidr}"
                cause = invalid(zone_path(index, field), cidr, text)
                yield Finding(cause, ec2(wanted, command))


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
