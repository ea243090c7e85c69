"""The connections to one API server, kept while they work and replaced when one fails.

A peer that vanishes without closing (a node that loses power, a firewall that drops its state)
leaves connections that look alive. The kernel probes idle ones and limits unacknowledged data, so
both are detected within `DEAD_PEER_SECONDS`; connections of the same age are then not reused.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final
from weakref import WeakSet

import aiohttp

DEAD_PEER_SECONDS: Final = 20
_TURNS_TO_HANG_UP: Final = 100


class _Pool:
    """A session that is closed after its last request once it is retired."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session
        self.users = 0
        self.is_retired = False


class Connections:
    """The sessions of one transport; the newest serves new requests.

    Args:
        open_session: creates a session whose connector opens its sockets with this factory.
        dead_peer_seconds: how long a peer may leave data or probes unanswered; at least 2.
    """

    def __init__(
        self,
        open_session: Callable[[aiohttp.SocketFactoryType], aiohttp.ClientSession],
        *,
        dead_peer_seconds: int = DEAD_PEER_SECONDS,
    ) -> None:
        self._open_session = open_session
        self._dead_peer_seconds = dead_peer_seconds
        self._newest: _Pool | None = None
        self._pools: set[_Pool] = set()
        self._is_closed = False
        self._sockets: WeakSet[socket.socket] = WeakSet()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Lend the session for one request; if the connection fails, replace it for later ones.

        Raises:
            ConnectionError: All connections were closed.
        """
        pool = self._pool()
        pool.users += 1
        try:
            yield pool.session
        except (aiohttp.ClientError, OSError, TimeoutError):
            self._retire(pool)
            raise
        finally:
            pool.users -= 1
            await self._close_if_done(pool)

    async def renew(self) -> None:
        """Open new connections from now on, as after a change of the client certificate."""
        if self._newest is not None:
            pool = self._newest
            self._retire(pool)
            await self._close_if_done(pool)

    async def close(self) -> None:
        """Close all connections for good, including those in use."""
        self._is_closed = True
        pools, self._pools, self._newest = self._pools, set(), None
        for pool in pools:
            await pool.session.close()
        await self._hang_up()

    def _pool(self) -> _Pool:
        if self._is_closed:
            raise ConnectionError("the client is closed")
        if self._newest is None:
            self._newest = _Pool(self._open_session(self._socket))
            self._pools.add(self._newest)
        return self._newest

    def _retire(self, pool: _Pool) -> None:
        pool.is_retired = True
        if self._newest is pool:
            self._newest = None

    async def _close_if_done(self, pool: _Pool) -> None:
        if pool.is_retired and not pool.users and pool in self._pools:
            self._pools.discard(pool)
            await pool.session.close()

    def _socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, _ = address
        opened = socket.socket(family, kind, protocol)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
            seconds = self._dead_peer_seconds
            for option, value in (
                (socket.TCP_KEEPIDLE, max(1, seconds // 2)),
                (socket.TCP_KEEPINTVL, max(1, seconds // 4)),
                (socket.TCP_USER_TIMEOUT, seconds * 1000),
            ):
                opened.setsockopt(socket.IPPROTO_TCP, option, value)
        self._sockets.add(opened)
        return opened

    async def _hang_up(self) -> None:
        """Abort TLS connections that still wait for the server's close message.

        A cancelled request leaves one behind, and nothing else would wait for it.
        """
        left = [one for one in self._sockets if one.fileno() >= 0]
        for one in left:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for _ in range(_TURNS_TO_HANG_UP):
            if all(one.fileno() < 0 for one in left):
                return
            await asyncio.sleep(0)
