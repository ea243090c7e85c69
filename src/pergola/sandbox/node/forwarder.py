"""Connections from the machine's loopback into a node's network, and none in the other direction.

A listening socket belongs to the network namespace that it was made in, whichever process accepts
from it: the supervisor accepts connections of the machine and connects them to addresses inside.
"""

import asyncio
import contextlib
import socket
import threading
from typing import Final

from pergola.sandbox.node import kernel

_CHUNK: Final = 1 << 16


class Forwarder:
    """The forwarded ports of one node.

    Args:
        outside: a descriptor of the machine's network namespace.
    """

    def __init__(self, outside: int) -> None:
        self._outside = outside
        self._servers: dict[tuple[str, int], asyncio.Server] = {}

    async def forward(self, host: str, port: int) -> int:
        """Forwards a loopback port of the machine to an address inside, and returns that port."""
        if (host, port) not in self._servers:
            await self.serve(await asyncio.to_thread(self._listen), host, port)
        return int(self._servers[host, port].sockets[0].getsockname()[1])

    async def serve(self, listener: socket.socket, host: str, port: int) -> None:
        """Forwards connections to `listener`, which is of the machine's network."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await _join(reader, writer, host, port)

        self._servers[host, port] = await asyncio.start_server(serve, sock=listener)

    def close(self) -> None:
        """Ends listening."""
        for server in self._servers.values():
            server.close()

    def _listen(self) -> socket.socket:
        """A new socket of the machine's; a thread of its own goes there, and ends there."""
        made: list[socket.socket] = []

        def make() -> None:
            kernel.enter_network(self._outside)
            listener = socket.socket()
            listener.bind(("127.0.0.1", 0))
            made.append(listener)

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        return made[0]


async def _join(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int
) -> None:
    with contextlib.suppress(OSError):
        inner_reader, inner_writer = await asyncio.open_connection(host, port)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_pump(reader, inner_writer))
                group.create_task(_pump(inner_reader, writer))
        finally:
            inner_writer.close()
    writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    except OSError:
        pass  # the end of one direction; the other end learns of it below
    finally:
        with contextlib.suppress(OSError, RuntimeError):
            writer.write_eof()
