"""The event loop of a process: uvloop, with one of its faults worked around."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any, cast

import uvloop


class EventLoop(uvloop.Loop):
    """uvloop, without closing the socket of a failed connection twice.

    When a connection fails in its first moments, uvloop closes the descriptor and forgets that the
    Python socket still owns it (https://github.com/MagicStack/uvloop/issues/653). Once that socket
    is collected, its descriptor is closed again, although another connection may have it by then.
    """

    async def create_connection(  # type: ignore[override] # of its many forms one is changed
        self, *args: Any, sock: socket.socket | None = None, **kwargs: Any
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Open a connection; see `asyncio.loop.create_connection`."""
        try:
            made = await super().create_connection(*args, sock=sock, **kwargs)
        except ValueError:  # the arguments are wrong, and the socket was not touched
            raise
        except BaseException:
            if sock is not None:
                sock.detach()
            raise
        transport, protocol = cast("tuple[asyncio.Transport, asyncio.BaseProtocol]", made)
        if sock is not None and transport.is_closing():
            sock.detach()
        return transport, protocol


def run(main: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run the coroutine of a process until it ends."""
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        runner.run(main())
