"""IP addresses and CIDRs, parsed as strictly as Kubernetes does.

The standard library accepts more than Kubernetes: zone ids (`fe80::1%eth0`), which can be any
text, netmasks, and ranges without a prefix length. As in Go, IPv4 that is mapped into IPv6
(`::ffff:10.0.0.0/112`) is IPv4. Other modules must not call `ipaddress` to
parse text; ruff enforces that. Pass on `str()` of a parsed value, never the text it came from.
"""

import ipaddress
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_MAPPED_BITS: Final = 96


def parse_address(text: str) -> Address:
    """Parse an address.

    Raises:
        ValueError: the text is not an address, or it has a zone id.
    """
    if "%" in text:
        raise ValueError(f"invalid IP address: {text!r}")
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f"invalid IP address: {text!r}") from None
    return unmapped(address)


def parse_network(text: str) -> Network:
    """Return the network of a CIDR, without its host bits.

    Raises:
        ValueError: the text is not a CIDR, or its address has a zone id.
    """
    address, _, length = text.partition("/")
    if "%" in address or not (length.isascii() and length.isdigit()):
        raise ValueError(f"invalid CIDR: {text!r}")
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError(f"invalid CIDR: {text!r}") from None
    first = unmapped(network.network_address)
    # A shorter prefix includes addresses that are not IPv4.
    if network.version == first.version or network.prefixlen < _MAPPED_BITS:
        return network
    return ipaddress.IPv4Network((int(first), network.prefixlen - _MAPPED_BITS))


def unmapped(address: Address) -> Address:
    """Return the IPv4 address that is mapped into an IPv6 address; return others unchanged."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def is_address(text: str) -> bool:
    """Return whether `parse_address` accepts the text."""
    try:
        parse_address(text)
    except ValueError:
        return False
    return True


def is_network(text: str) -> bool:
    """Return whether `parse_network` accepts the text."""
    try:
        parse_network(text)
    except ValueError:
        return False
    return True


def has_host_bits(text: str) -> bool:
    """Return whether the address of a CIDR is not the first one of its network.

    Raises:
        ValueError: as `parse_network` does.
    """
    return parse_address(text.partition("/")[0]) != parse_network(text).network_address


def overlap(one: Network, other: Network) -> bool:
    """Return whether two networks share addresses; those of different IP versions never do."""
    return one.version == other.version and one.overlaps(other)
