"""Validation of control plane hosts: DNS names and addresses that every client understands.

An endpoint is written once: Cluster API copies it and never reads it again, and providers refuse to
change it. Anything that is not certainly a valid host is therefore refused before it is written.
"""

import re
from typing import Final

from pergola.api.ip_ranges import parse_address

_LABEL: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_NUMBER: Final = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_CHARACTERS: Final = 253


def host_problem(host: str) -> str | None:
    """Return the problem of a host, as the end of a sentence; None if it is usable."""
    if not host:
        return "must not be empty"
    if "://" in host:
        return "must be a host without a scheme"
    if host.startswith("["):
        return "must be an IPv6 address without brackets"
    name, _, port = host.rpartition(":")
    if name and ":" not in name and _NUMBER.fullmatch(port):
        return "must be a host without a port; write the port separately"
    if ":" in host or _NUMBER.fullmatch(host.rpartition(".")[2]):
        return _address_problem(host)
    return _name_problem(host)


def _address_problem(text: str) -> str | None:
    try:
        address = parse_address(text)
    except ValueError:
        return "must be a valid IP address or DNS name"
    if address.is_unspecified or address.is_multicast:
        return "must be an address that clients can connect to"
    return None


def _name_problem(name: str) -> str | None:
    if len(name) > _CHARACTERS:
        return f"must be at most {_CHARACTERS} characters long"
    if not all(_LABEL.fullmatch(label) for label in name.split(".")):
        return (
            "must be a DNS name: letters, digits and hyphens between dots, each part at most 63 "
            "characters long and without a hyphen at either end"
        )
    return None
