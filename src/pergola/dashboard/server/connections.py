"""Connections of the page: bounded in number, and without peers that send nothing.

aiohttp waits for a first request, and for the rest of one, without limit, and handshakes do not
count. Each of its protocols is therefore wrapped in one that is counted when it is accepted and has
a deadline, as the server of webhooks does.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final, cast

from aiohttp import web
from aiohttp.typedefs import Handler

from pergola.admission.accepting import Accepted, accept
from pergola.admission.connections import Connections, Limits
from pergola.runtime.task_group import TaskGroup

LIMITS: Final = Limits(connections=500, connections_per_peer=400, idle_seconds=75.0)
"""One peer may be a proxy, through which all users come, but leaves room for others."""
_SWEEP_SECONDS: Final = 1.0
_NEVER: Final = float("inf")


class _Guarded(Accepted):
    """A protocol of aiohttp with a deadline.

    Attributes:
        peer: The address; empty if unknown.
        deadline: On the clock of the event loop.
        since: When it was accepted, or its last request was answered.
        was_used: Whether it has sent a request.
    """

    def __init__(
        self,
        inner: asyncio.Protocol,
        connections: Connections,
        peer: str,
        on_end: Callable[[], object],
    ) -> None:
        super().__init__(connections.buffer)
        self.peer = peer
        self.was_used = False
        self.since = connections.now()
        self.deadline = self.since + connections.limits.first_request_seconds
        self._inner = inner
        self._connections = connections
        self._transport: asyncio.Transport | None = None
        self._answering = 0
        self._on_end = on_end
        self._is_receiving = False

    @property
    def is_busy(self) -> bool:
        """Whether a request is being received or answered."""
        return self._is_receiving or self.is_answering

    @property
    def is_answering(self) -> bool:
        """Whether a request is being answered."""
        return self._answering > 0

    def expire(self) -> None:
        """Abort the connection because its deadline has passed."""
        self.abort()

    def abort(self) -> None:
        """Abort the connection, or its handshake."""
        if self._transport is not None:
            self._transport.abort()
        elif self.handshake is not None:
            self.handshake.cancel()

    def begin(self) -> None:
        """Note that the headers of a request were received; its handler limits the body."""
        self._answering += 1
        self._is_receiving = False
        self.was_used = True
        self.deadline = _NEVER

    def end(self) -> None:
        """Note that a request was answered."""
        self._answering -= 1
        self.since = self._connections.now()
        self.deadline = self.since + self._connections.limits.idle_seconds

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the first request."""
        self._transport = cast("asyncio.Transport", transport)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass data on; the first ones of a request begin its time."""
        if not self.is_busy:
            self._is_receiving = True
            now = self._connections.now()
            self.deadline = now + self._connections.limits.receive_seconds
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass the end of data on."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Pass on that the peer reads slowly."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the peer reads again."""
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it no longer."""
        self._connections.leave(self)
        self._on_end()
        if self._transport is not None:
            self._inner.connection_lost(exc)


class Guard:
    """The connections of one server."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._guarded: dict[asyncio.Protocol, _Guarded] = {}

    @asynccontextmanager
    async def accepting(
        self,
        listener: socket.socket,
        protocols: Callable[[], asyncio.Protocol],
        tls: ssl.SSLContext | None = None,
    ) -> AsyncGenerator[None]:
        """Accept connections, and keep their deadlines, until the end of the block."""
        connections = Connections(self._limits, asyncio.get_running_loop().time)

        def guarded(peer: str) -> _Guarded:
            inner = protocols()
            found = _Guarded(inner, connections, peer, lambda: self._guarded.pop(inner, None))
            self._guarded[inner] = found
            return found

        async def sweep() -> None:
            while True:
                await asyncio.sleep(_SWEEP_SECONDS)
                connections.sweep()

        listener.setblocking(False)  # noqa: FBT003 - its name is the method's
        async with TaskGroup() as group:
            accepting = accept(
                listener, connections, make=guarded, context=lambda: tls, start=group.create_task
            )
            tasks = [group.create_task(accepting), group.create_task(sweep())]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                for connection in connections.idle():
                    connection.abort()
                listener.close()

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Note when a request begins and ends."""
        guarded = self._guarded.get(request.protocol)
        if guarded is None:
            return await handler(request)
        guarded.begin()
        try:
            return await handler(request)
        finally:
            guarded.end()
