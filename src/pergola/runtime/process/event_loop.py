"""The event loop of a process: uvloop, with two of its faults worked around."""

import asyncio
import gc
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Final, cast

import uvloop

from pergola.runtime.memory import release_free_memory

YOUNG_OBJECTS: Final = 10_000
"""Python looks for garbage whenever so many more containers were created than deleted.

Its default of 700 is less than what a few decoded objects have that are worked on at the same time:
they were looked at again and again, got old, and brought on full collections, which take 50 ms and
more (docs/explanation/performance.md). Almost all of our garbage has no cycles.
"""
COLLECTION_SECONDS: Final = 300.0
"""How often old objects are looked at.

Without a timer, that hardly happens: not once in an hour of a busy process. But closed connections
are cycles, with buffers of 256 KiB each.
"""


class EventLoop(uvloop.Loop):
    """uvloop, without two faults of its connections.

    When a connection fails in its first moments, uvloop closes the descriptor and forgets that the
    Python socket still owns it (https://github.com/MagicStack/uvloop/issues/653). When Python
    collects that socket, it closes the descriptor again, although another connection may use it by
    then.

    When a TLS connection is cancelled right after its handshake, uvloop waits for the peer to close
    it, or closes the descriptor and then fails to write to it, with a "Fatal error on SSL
    protocol".
    """

    async def create_connection(  # type: ignore[override] # of its many forms one is changed
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        *args: Any,
        sock: socket.socket | None = None,
        **kwargs: Any,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Open a connection; see `asyncio.loop.create_connection`."""
        protocol = protocol_factory()
        try:
            made = await super().create_connection(lambda: protocol, *args, sock=sock, **kwargs)
        except ValueError:  # the arguments are wrong, and the socket was not touched
            raise
        except BaseException:
            abandoned: asyncio.Transport | None = getattr(protocol, "transport", None)
            if abandoned is not None:  # after the handshake, aiohttp's protocols have one
                abandoned.abort()
            if sock is not None:
                sock.detach()
            raise
        transport, protocol = cast("tuple[asyncio.Transport, asyncio.BaseProtocol]", made)
        if sock is not None and transport.is_closing():
            sock.detach()
        return transport, protocol


def run(main: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run the coroutine of a process until it ends."""
    gc.freeze()  # modules live as long as the process: keep the collector from visiting them
    gc.set_threshold(YOUNG_OBJECTS)
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        release_regularly(runner.get_loop(), COLLECTION_SECONDS)
        runner.run(main())


def release_regularly(loop: asyncio.AbstractEventLoop, seconds: float) -> None:
    """Delete garbage, and return its memory, after so many seconds again and again."""

    def release() -> None:
        release_free_memory()
        loop.call_later(seconds, release)

    loop.call_later(seconds, release)
