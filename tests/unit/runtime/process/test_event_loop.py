"""The handling of sockets whose connection fails, by a process's event loop."""

import asyncio
import os
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager

import pytest

from pergola.runtime.process.event_loop import EventLoop

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@contextmanager
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def connected(server: socket.socket) -> socket.socket:
    sock = socket.create_connection(server.getsockname())
    sock.settimeout(0)
    return sock


def run(work: Coroutine[None, None, None]) -> None:
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        runner.run(work)


async def cancelled(sock: socket.socket, _: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(loop.create_connection(asyncio.Protocol, sock=sock))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def reset(sock: socket.socket, peer: socket.socket) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    peer.close()
    with pytest.raises(ConnectionError):
        await asyncio.get_running_loop().create_connection(
            asyncio.Protocol, sock=sock, ssl=ssl.create_default_context(), server_hostname="x"
        )


@pytest.mark.parametrize("fail", [cancelled, reset])
def test_the_socket_of_a_failed_connection_never_closes_the_descriptor_of_another(
    fail: Callable[[socket.socket, socket.socket], Awaitable[None]],
) -> None:
    async def work() -> None:
        with listening() as server:
            sock = connected(server)
            descriptor = sock.fileno()
            peer, _ = server.accept()
            with peer:
                await fail(sock, peer)
                for _ in range(5):
                    await asyncio.sleep(0)
                assert sock.fileno() == -1
                with pytest.raises(OSError, match="Bad file descriptor"):
                    os.fstat(descriptor)

    run(work())


def test_a_successful_connection_keeps_its_socket() -> None:
    async def work() -> None:
        with listening() as server:
            sock = connected(server)
            loop = asyncio.get_running_loop()
            transport, _ = await loop.create_connection(asyncio.Protocol, sock=sock)
            peer, _ = server.accept()
            with peer:
                assert os.fstat(sock.fileno())
                transport.close()
                await asyncio.sleep(0)

    run(work())
