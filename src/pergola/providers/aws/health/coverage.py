"""Coverage of ranges by rules: do they allow all addresses to reach all ports? Pure."""

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, collapse_addresses

from pergola.api.ip_ranges import parse_network
from pergola.providers.aws.resources.security_group.rules import (
    ALL,
    Ports,
    Rule,
)

_Network = IPv4Network | IPv6Network


def applies_to(needed: Rule, rule: Rule) -> bool:
    """Return whether a rule has the required protocol."""
    return rule.protocol in (ALL, needed.protocol)


def overlaps(one: Ports | None, other: Ports | None) -> bool:
    """Return whether two port ranges overlap; None means all ports."""
    return one is None or other is None or (one[0] <= other[1] and other[0] <= one[1])


def covers(rules: Iterable[Rule], peer: str, ports: Ports) -> bool:
    """Return whether rules together allow all addresses of a range to reach all ports."""
    several = [(rule.ports or ports, parse_network(rule.peer)) for rule in rules]
    # Between these ports, the answer does not change.
    edges = {ports[0], *(edge for (low, high), _ in several for edge in (low, high + 1))}
    return all(
        _contains(parse_network(peer), [net for (low, high), net in several if low <= edge <= high])
        for edge in edges
        if ports[0] <= edge <= ports[1]
    )


def _contains(needed: _Network, networks: Iterable[_Network]) -> bool:
    if isinstance(needed, IPv4Network):
        own = collapse_addresses(n for n in networks if isinstance(n, IPv4Network))
        return any(needed.subnet_of(net) for net in own)
    own6 = collapse_addresses(n for n in networks if isinstance(n, IPv6Network))
    return any(needed.subnet_of(net) for net in own6)
