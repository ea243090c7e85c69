"""IPv6 ranges of subnets: a /64 of the VPC's block for each (spec 30 §3.5)."""

import ipaddress
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from pergola.api.ip_ranges import parse_network
from pergola.api.objects import JsonObject
from pergola.cloud.errors import CloudError
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws import state as keys
from pergola.providers.aws.resources.ours import in_vpc
from pergola.providers.aws.resources.step import Work
from pergola.providers.aws.resources.subnets.desired import Subnet, places_of
from pergola.providers.aws.resources.waiting import once_visible

_CONFLICT: Final = "InvalidSubnet.Conflict"
_RANGE_BITS: Final = 64


def part(block: str, bits: int, number: int) -> str:
    """Return the n-th range of a size in a block, as in `part("fd00::/56", 64, 1)`."""
    network = parse_network(block)
    size = 1 << (network.max_prefixlen - bits)
    return f"{network[number * size]}/{bits}"


def places_in(block: str) -> int:
    """Return the number of /64 ranges in the IPv6 block of a VPC, which is a /44 to a /60."""
    return 1 << max(0, _RANGE_BITS - parse_network(block).prefixlen)


def ipv6_range_of(subnet: JsonObject) -> str | None:
    """Return the IPv6 range that a subnet has, or is about to have."""
    gone = ("disassociating", "disassociated", "failing", "failed")
    for each in subnet.get("Ipv6CidrBlockAssociationSet") or []:
        if each["Ipv6CidrBlockState"]["State"] not in gone:
            found: str = each["Ipv6CidrBlock"]
            return found
    return None


def places_taken(block: str, subnets: Iterable[JsonObject]) -> set[int]:
    """Return the places in a block that subnets occupy."""
    network = ipaddress.IPv6Network(block)
    first, size = int(network.network_address), 1 << 64
    taken = (ipaddress.IPv6Network(each) for subnet in subnets if (each := ipv6_range_of(subnet)))
    return {
        (int(each.network_address) - first) // size for each in taken if each.subnet_of(network)
    }


async def in_free_range(
    work: Work, subnet: Subnet, operation: str, parameters: JsonObject
) -> JsonObject:
    """Repeat a request with the next free IPv6 range, starting with the subnet's own place."""
    for ipv6_range in free_ranges(work, subnet):
        try:
            return await once_visible(work, operation, **parameters, Ipv6CidrBlock=ipv6_range)
        except CloudError as error:
            is_ipv4 = subnet.cidr is not None and subnet.cidr in str(error)
            if error.code != _CONFLICT or is_ipv4:
                raise
    raise ExtensionError(
        f"VPC {work.state.get(keys.VPC)} has no free IPv6 range for the subnet "
        f'"{subnet.prefix}" in {subnet.zone}: delete unused subnets',
        Code.DEPENDENCIES,
    )


def free_ranges(work: Work, subnet: Subnet) -> Iterator[str]:
    """Yield the subnet's own range, then unreserved ones, finally those of other subnets."""
    block = work.state.get(keys.VPC_IPV6_BLOCK) or ""
    inside = (each for each in work.snapshot.subnets.values() if in_vpc(work, each))
    taken = places_taken(block, inside)
    count = places_in(block)
    reserved = min(places_of(work.desired), count)
    own = range(count)[subnet.place : subnet.place + 1]
    others = chain(range(reserved, count), range(reserved))
    for place in chain(own, (each for each in others if each not in own)):
        if place not in taken:
            yield part(block, _RANGE_BITS, place)
