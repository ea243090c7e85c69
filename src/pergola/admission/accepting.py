"""Accepting connections before their TLS handshake, so that handshakes also count."""

import asyncio
import socket
import ssl
from abc import abstractmethod
from collections.abc import Callable, Coroutine
from typing import Final

from pergola.admission.connections import Connections, Member
from pergola.runtime.logging import get_logger

log = get_logger("connections")

HANDSHAKE_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 0.1


class Accepted(Member, asyncio.BufferedProtocol):
    """A connection that was accepted; `connection_lost` is called if its handshake fails, too.

    All connections of a server receive into one buffer. Without it, uvloop allocates 256 KiB for
    whatever arrives over TLS, and memory of this size is mapped and unmapped every time, because
    large blocks are allocated apart: that took a third of the CPU of a review.

    Attributes:
        handshake: ends with the TLS handshake.
    """

    handshake: asyncio.Task[None] | None = None

    def __init__(self, buffer: memoryview) -> None:
        self._buffer = buffer

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to put what arrives; `buffer_updated` follows at once."""
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take what has arrived out of the buffer."""
        self.data_received(self._buffer[:nbytes].tobytes())

    @abstractmethod
    def data_received(self, data: bytes) -> None:
        """Take what has arrived."""


async def accept(
    listener: socket.socket,
    connections: Connections,
    *,
    make: Callable[[str], Accepted],
    context: Callable[[], ssl.SSLContext | None],
    start: Callable[[Coroutine[None, None, None]], asyncio.Task[None]],
) -> None:
    """Accept connections until cancelled.

    Args:
        make: returns the protocol for a peer.
        context: returns the settings of TLS, or None without.
        start: starts a task, which ends with the handshake.
    """
    loop = asyncio.get_running_loop()
    while True:
        try:
            accepted, address = await loop.sock_accept(listener)
        except OSError as error:  # too many open files, or the peer is gone
            log.warning("connection not accepted", error=str(error))
            connections.evict()
            await asyncio.sleep(_RETRY_SECONDS)
            continue
        connection = make(str(address[0]))
        if not connections.admit(connection):
            accepted.close()
            continue
        connection.handshake = start(_handshake(accepted, context(), connection))
        await asyncio.sleep(0)  # start the handshake, so that it notices a cancellation


async def _handshake(
    accepted: socket.socket, context: ssl.SSLContext | None, connection: Accepted
) -> None:
    loop = asyncio.get_running_loop()
    try:
        await loop.connect_accepted_socket(
            lambda: connection,
            accepted,
            ssl=context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if context else None,
        )
    except (OSError, ssl.SSLError, TimeoutError) as error:
        connection.connection_lost(error)
        accepted.close()
    except asyncio.CancelledError:
        connection.connection_lost(None)
        accepted.close()
        raise
