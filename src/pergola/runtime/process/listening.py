"""Open listening sockets, and explain to users why one cannot be opened."""

import errno
import socket
from typing import Final

_LAST_PORT: Final = 65535


class ListenError(Exception):
    """A process cannot listen on a port."""


def listen(bind: str, port: int, what: str, *, shared: bool = False) -> socket.socket:
    """Open one socket for all addresses and both protocols, so that port 0 is one port.

    Args:
        bind: the address; empty for all.
        port: 0 for any that is free.
        what: the purpose of the socket, for the error.
        shared: whether other processes of the same user may listen there, too; the system
            distributes connections among them.

    Raises:
        ListenError: the port is taken, or not allowed.
    """
    if not 0 <= port <= _LAST_PORT:
        raise ListenError(f"cannot listen on port {port} for {what}: ports are 0 to {_LAST_PORT}")
    try:
        if not bind and socket.has_dualstack_ipv6():
            return socket.create_server(
                ("", port), family=socket.AF_INET6, dualstack_ipv6=True, reuse_port=shared
            )
        family = socket.AF_INET6 if ":" in bind else socket.AF_INET
        return socket.create_server((bind, port), family=family, reuse_port=shared)
    except OSError as error:
        raise ListenError(_explain(error, f"{bind or '*'}:{port}", what)) from error


def _explain(error: OSError, address: str, what: str) -> str:
    reason = {
        errno.EADDRINUSE: "another process listens there; end it or choose another port",
        errno.EACCES: "this user may not; choose a port above 1023",
        errno.EADDRNOTAVAIL: "this machine has no such address",
    }.get(error.errno or 0, str(error))
    return f"cannot listen on {address} for {what}: {reason}"
