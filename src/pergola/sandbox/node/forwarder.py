"""Forwarding of connections between the machine's loopback and a node's network.

A socket belongs to the network namespace that it was created in, whichever process uses it: the
supervisor accepts connections on the machine and forwards them to addresses inside, and the other
way round. Only ports that were offered lead outward.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from pergola.sandbox.errors import SandboxError
from pergola.sandbox.node import kernel
from pergola.sandbox.pumping import Connections, Stream, join

_LIMIT: Final = 8.0  # seconds; the rules of a new Service take about one
_PATIENCE: Final = 1.0  # seconds per attempt
_PAUSE: Final = 0.1  # seconds between attempts


class Address(NamedTuple):
    """An IPv4 address and a TCP port."""

    host: str
    port: int


ANY: Final = Address("127.0.0.1", 0)
MACHINE: Final = "198.51.100.1"
"""The machine's address inside; NetworkPolicies that allow public networks allow it."""


class Forwarder:
    """The forwarded ports of one node.

    Args:
        outside: a descriptor of the machine's network namespace.
    """

    def __init__(self, outside: int) -> None:
        self._outside = outside
        self._servers: dict[Address, asyncio.Server] = {}
        self._connections = Connections()
        self._targets: dict[Address, Address] = {}
        self._offers: dict[int, Address] = {}

    async def forward(self, target: Address, at: Address = ANY) -> Address:
        """Forward an address of the machine's loopback to one inside.

        Returns:
            The address outside, which is the same for repeated calls.

        Raises:
            SandboxError: the address is in use.
        """
        if at == ANY:
            known = [a for a, found in self._targets.items() if found == target]
            at = next((a for a in known if a.host == ANY.host), ANY)
        if self._targets.get(at) == target:
            return at
        if at in self._targets:
            self._close(at)
        listener = await asyncio.to_thread(self._listen, at)
        return await self.serve(listener, target)

    async def serve(self, listener: socket.socket, target: Address) -> Address:
        """Forward connections to `listener`, a socket of the machine's network."""
        at = await self._serve(listener, lambda: _connect(target))
        self._targets[at] = target
        return at

    async def offer(self, port: int, host: str = MACHINE, at_port: int = 0) -> Address:
        """Forward connections from inside to a port of the machine's loopback.

        Args:
            host: the address that they are made to.
            at_port: the port that they are made to; 0 for any.

        Returns:
            The address inside, which is the same for repeated calls.

        Raises:
            SandboxError: the address is in use.
        """
        if port not in self._offers:
            try:
                listener = socket.create_server((host, at_port))
            except OSError as error:
                raise SandboxError(f"cannot listen on {host}:{at_port}: {error}") from error
            self._offers[port] = await self._serve(listener, lambda: self._connect_outside(port))
        return self._offers[port]

    async def _serve(
        self, listener: socket.socket, connect: Callable[[], Awaitable[Stream]]
    ) -> Address:
        async def serve(connection: Stream) -> None:
            await _join(connection, connect)

        accept = self._connections.served_by(serve)
        at = Address(*listener.getsockname())
        self._servers[at] = await asyncio.start_server(accept, sock=listener)
        return at

    def close(self, host: str) -> None:
        """Stop listening on all ports of an address."""
        for at in [at for at in self._servers if at.host == host]:
            self._close(at)

    async def close_all(self) -> None:
        """Stop listening everywhere, and end all connections."""
        for at in list(self._servers):
            self._close(at)
        await self._connections.end()

    def _close(self, at: Address) -> None:
        self._servers.pop(at).close()
        self._targets.pop(at, None)

    def _listen(self, at: Address) -> socket.socket:
        """Listen in the machine's network namespace."""

        def make(listener: socket.socket) -> None:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(at)
            listener.listen()  # with SO_REUSEADDR a conflict shows only here

        try:
            return self._made_outside(make)
        except OSError as error:
            raise SandboxError(f"cannot listen on {at.host}:{at.port}: {error.strerror}") from error

    async def _connect_outside(self, port: int) -> Stream:
        def make(connection: socket.socket) -> None:
            connection.connect((ANY.host, port))

        made = await asyncio.to_thread(self._made_outside, make)
        return Stream(*await asyncio.open_connection(sock=made))

    def _made_outside(self, make: Callable[[socket.socket], None]) -> socket.socket:
        """Return a socket of the machine's network namespace, which a short-lived thread enters.

        Raises:
            OSError: `make` could not bind or connect it.
        """
        made: list[socket.socket | OSError] = []

        def run() -> None:
            kernel.enter_network(self._outside)
            found = socket.socket()
            try:
                make(found)
            except OSError as error:
                found.close()
                made.append(error)
            else:
                made.append(found)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        [outcome] = made
        if isinstance(outcome, OSError):
            raise outcome
        return outcome


async def _join(connection: Stream, connect: Callable[[], Awaitable[Stream]]) -> None:
    try:
        with contextlib.suppress(OSError):
            await join(connection, await connect())
    finally:
        connection.writer.close()


async def _connect(target: Address) -> Stream:
    """Connect, and try again for a while if the target is a Service or pod.

    Until kube-proxy knows the pods of a new Service, connections are refused, or get no answer: the
    kernel routes each connection once. The next attempt is a new connection.
    """
    async with asyncio.timeout(_LIMIT):
        while True:
            try:
                async with asyncio.timeout(_PATIENCE):
                    return Stream(*await asyncio.open_connection(*target))
            except TimeoutError:
                continue
            except ConnectionRefusedError:
                if target.host == ANY.host:  # the API server is down
                    raise
            await asyncio.sleep(_PAUSE)
