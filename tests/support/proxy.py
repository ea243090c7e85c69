"""A connection to an API server that tests can cut, stall and refuse.

    async with CuttableProxy(load(kubeconfig)) as proxy, Client.connect(proxy.config) as client:
        ...
        proxy.cut()

Bytes pass as they are, so TLS is between the client and the server as always.
"""

import asyncio
import socket
import struct
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from pergola.kube.kubeconfig import ClusterConfig

_LOCALHOST: Final = "127.0.0.1"
_CHUNK: Final = 64 * 1024
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)


class CuttableProxy:
    """A TCP proxy on 127.0.0.1 in front of one API server.

    Attributes:
        config: the server's configuration, by way of the proxy; there once it is entered.
        accepted: how many connections were made so far, refused ones not counted.
    """

    config: ClusterConfig

    def __init__(self, config: ClusterConfig) -> None:
        url = urlsplit(config.server)
        self._direct = config
        self._host = url.hostname or _LOCALHOST
        self._port = url.port or (443 if url.scheme == "https" else 80)
        self._refuses = False
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._answered = asyncio.Event()
        self._answered.set()
        self._listener: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: set[asyncio.Task[None]] = set()
        self._problems: list[BaseException] = []
        self.accepted = 0

    async def __aenter__(self) -> Self:
        self._listener = listener = _socket()
        listener.bind((_LOCALHOST, 0))
        listener.listen(128)
        port = listener.getsockname()[1]
        url = urlsplit(self._direct.server)
        self.config = replace(
            self._direct,
            server=url._replace(netloc=f"{_LOCALHOST}:{port}").geturl(),
            tls_server_name=self._direct.tls_server_name or self._host,
        )
        self._start(self._serve(listener))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._listener is not None:
            self._listener.close()
        if self._problems:
            raise self._problems[0]

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    def cut(self) -> int:
        """Reset all open connections; return how many there were."""
        cut = list(self._connections)
        self._connections.clear()
        for task in cut:
            task.cancel()
        return len(cut)

    def stall(self) -> None:
        """Stop all traffic in both directions from now on, without closing connections."""
        self._flowing.clear()

    def flow(self) -> None:
        """Resume traffic, including the bytes that waited."""
        self._flowing.set()

    def hold_back(self) -> None:
        """Hold back what the client sends from now on until the server sends something."""
        self._answered.clear()

    def refuse(self) -> None:
        """Reset every new connection at once; open ones stay."""
        self._refuses = True

    def accept(self) -> None:
        """Accept new connections again."""
        self._refuses = False

    async def _serve(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            client, _ = await loop.sock_accept(listener)
            if self._refuses:
                _reset(client)
                continue
            self._admit(client)

    def _admit(self, client: socket.socket) -> None:
        self.accepted += 1
        task = self._start(self._connect(client))
        # Not in the task: one that is cut before its first step never runs at all.
        task.add_done_callback(lambda _: _reset(client))
        self._connections.add(task)

    async def _connect(self, client: socket.socket) -> None:
        """Forward bytes both ways until one side ends or fails, or the connection is cut."""
        server = _socket()
        try:
            # The client must see this failure, too: as a reset.
            with suppress(OSError):
                loop = asyncio.get_running_loop()
                await loop.sock_connect(server, (self._host, self._port))
                await self._carry_both(client, server)
        finally:
            _reset(server)

    async def _carry_both(self, client: socket.socket, server: socket.socket) -> None:
        ways = [
            self._start(self._carry_requests(client, server)),
            self._start(self._carry_answers(server, client)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _carry_requests(self, client: socket.socket, server: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            while data := await loop.sock_recv(client, _CHUNK):
                await self._flowing.wait()
                await self._answered.wait()
                await loop.sock_sendall(server, data)

    async def _carry_answers(self, server: socket.socket, client: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            while data := await loop.sock_recv(server, _CHUNK):
                await self._flowing.wait()
                self._answered.set()
                await loop.sock_sendall(client, data)

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._connections.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._problems.append(problem)


def _socket() -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setblocking(False)  # noqa: FBT003 - the argument is positional only
    return opened


def _reset(connection: socket.socket) -> None:
    """Reset the connection, so that the peer gets an error instead of an end of file."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    connection.close()
