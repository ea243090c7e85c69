"""CIDRs: valid, disjoint, and inside the ranges that contain them (V15, V16)."""

import ipaddress
from collections.abc import Iterator
from typing import NamedTuple

from pergola.api.field_errors import Cause, invalid
from pergola.api.ip_ranges import has_host_bits, parse_network
from pergola.providers.aws.config import InfrastructureConfig
from pergola.providers.aws.validation.facts import ShootFacts

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class _Range(NamedTuple):
    path: str
    text: str
    network: Network

    def overlaps(self, other: "_Range") -> bool:
        return self.network.version == other.network.version and self.network.overlaps(
            other.network
        )

    def is_inside(self, other: "_Range") -> bool:
        match self.network, other.network:
            case (ipaddress.IPv4Network() as inner, ipaddress.IPv4Network() as outer):
                return inner.subnet_of(outer)
            case (ipaddress.IPv6Network() as inner6, ipaddress.IPv6Network() as outer6):
                return inner6.subnet_of(outer6)
        return False


def check_ranges(config: InfrastructureConfig, facts: ShootFacts) -> Iterator[Cause]:
    """Yield findings about the CIDRs of a managed VPC and of managed subnets.

    The Shoot's own ranges are only used for comparison; they are not validated here.
    """
    vpc = config.networks.vpc.cidr
    said = [("networks.vpc.cidr", vpc)] if vpc is not None else []
    said += _subnets(config, facts)
    for path, text in said:
        yield from _malformed(path, text)
    known = _known(said)
    whole = [found for found in known if found.path == "networks.vpc.cidr"]
    subnets = [found for found in known if found.path != "networks.vpc.cidr"]
    for outer in whole:
        if not facts.has_ipv6:
            yield from (
                _not_inside(subnet, outer) for subnet in subnets if not subnet.is_inside(outer)
            )
            yield from _without_nodes(outer, facts)
    yield from _outside_of_nodes(subnets, facts)
    for index, subnet in enumerate(subnets):
        yield from _overlaps(subnet, subnets[:index])
    others = _known([("networking.pods", facts.pods), ("networking.services", facts.services)])
    for found in known:
        yield from _overlaps(found, others)


def parse_range(text: str) -> Network | None:
    """Return a CIDR, host bits allowed; None if it is not valid."""
    try:
        return parse_network(text)
    except ValueError:
        return None


def _subnets(config: InfrastructureConfig, facts: ShootFacts) -> list[tuple[str, str]]:
    """Return the subnets' ranges, without those of workers if the Shoot has no IPv4."""
    found: list[tuple[str, str]] = []
    for index, zone in enumerate(config.networks.zones):
        workers = None if facts.has_only_ipv6 else zone.workers
        ranges = (("public", zone.public), ("internal", zone.internal), ("workers", workers))
        found += [
            (f"networks.zones[{index}].{name}", cidr) for name, cidr in ranges if cidr is not None
        ]
    return found


def _malformed(path: str, text: str) -> Iterator[Cause]:
    network = parse_range(text)
    if network is None:
        yield invalid(path, text, f"invalid CIDR address: {text}")
    elif has_host_bits(text):
        yield invalid(path, text, f"must be valid canonical CIDR, which is {network}")


def _known(said: list[tuple[str, str]]) -> list[_Range]:
    read = ((path, text, parse_range(text)) for path, text in said)
    return [_Range(path, text, network) for path, text, network in read if network is not None]


def _outside_of_nodes(subnets: list[_Range], facts: ShootFacts) -> Iterator[Cause]:
    for nodes in _known([("networking.nodes", facts.nodes)]):
        for subnet in subnets:
            if not subnet.path.endswith(".workers") or subnet.is_inside(nodes):
                continue
            # `networking.nodes` may be the IPv6 range of nodes that have both families.
            is_other = subnet.network.version == 4 and nodes.network.version == 6
            if not (is_other and facts.has_ipv6):
                yield _not_inside(subnet, nodes)


def _without_nodes(vpc: _Range, facts: ShootFacts) -> Iterator[Cause]:
    for nodes in _known([("networking.nodes", facts.nodes)]):
        if not nodes.is_inside(vpc):
            detail = f'must contain "{nodes.path}" ("{nodes.text}")'
            yield invalid(vpc.path, vpc.text, detail)


def _not_inside(inner: _Range, outer: _Range) -> Cause:
    return invalid(inner.path, inner.text, f'must be a subset of "{outer.path}" ("{outer.text}")')


def _overlaps(found: _Range, others: list[_Range]) -> Iterator[Cause]:
    for other in others:
        if found.overlaps(other):
            yield invalid(
                found.path, found.text, f'must not overlap with "{other.path}" ("{other.text}")'
            )
