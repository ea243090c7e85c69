"""Ports of this machine whose number must be known before a server listens on them."""

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_LOWEST: Final = 10_000
_AUTOMATIC: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


@contextmanager
def held_port(host: str = "127.0.0.1") -> Iterator[int]:
    """Reserve a port while the block lasts; servers may stop and listen on it again.

    The system does not assign it to sockets bound to port 0. A UDP socket keeps the number from
    other callers, and does not interfere with a TCP server.
    """
    with _hold(host) as holder:
        port: int = holder.getsockname()[1]
        yield port


def _hold(host: str) -> socket.socket:
    first_automatic = int(_AUTOMATIC.read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(_LOWEST, first_automatic)
        holder = socket.socket(type=socket.SOCK_DGRAM)
        try:
            holder.bind((host, port))
            with socket.socket() as server:
                server.bind(("", port))  # free at every address
        except OSError:
            holder.close()
        else:
            return holder
