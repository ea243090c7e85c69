"""Whether a connection over loopback comes from the user who runs this process.

Browsers send cookies to every port of a host, and command lines are readable by everyone on a
machine, so that another user of it may have learnt a cookie or a link.
"""

import os
import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ROOT: Final = 0
_IPV4_BYTES: Final = 4
_MAPPED: Final = bytes(10) + b"\xff\xff"
"""The beginning of IPv4 addresses in the table of IPv6."""
Address = tuple[str, int]


class _Row(NamedTuple):
    local: Address
    remote: Address
    uid: int


def is_own(peer: Address, here: Address, tables: Sequence[Path] = TABLES) -> bool:
    """Return whether the other end of a connection belongs to this user or to root.

    Without tables that show our own end, the kernel does not tell, and every peer counts as own.
    """
    rows = [row for table in tables for row in _rows(table)]
    if not any((row.local, row.remote) == (here, peer) for row in rows):
        return True
    owners = [row.uid for row in rows if (row.local, row.remote) == (peer, here)]
    return bool(owners) and all(uid in (os.getuid(), _ROOT) for uid in owners)


def _rows(table: Path) -> Iterator[_Row]:
    try:
        _, *lines = table.read_text().splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        fields = line.split()
        yield _Row(_address(fields[1]), _address(fields[2]), int(fields[7]))


def _address(text: str) -> Address:
    """Return an address of a table: words in the byte order of the machine, and a port."""
    words, _, port = text.partition(":")
    packed = b"".join(
        struct.pack("=I", int(words[at : at + 8], 16)) for at in range(0, len(words), 8)
    )
    if packed.startswith(_MAPPED):
        packed = packed.removeprefix(_MAPPED)
    family = socket.AF_INET if len(packed) == _IPV4_BYTES else socket.AF_INET6
    return socket.inet_ntop(family, packed), int(port, 16)
