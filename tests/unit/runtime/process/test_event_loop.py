"""The handling of sockets whose connection fails, by a process's event loop."""

import asyncio
import gc
import os
import socket
import ssl
import struct
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pergola.runtime.process.event_loop import EventLoop, release_regularly
from tests.support.admission_site import write_pair

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


class Cycle:
    """An object that refers to itself, as closed connections do."""

    def __init__(self) -> None:
        self.itself = self


def test_old_garbage_is_collected_without_new_objects() -> None:
    async def work() -> None:
        garbage = Cycle()
        gone, collected = weakref.ref(garbage), asyncio.Event()
        weakref.finalize(garbage, collected.set)
        gc.collect()  # it is old now: only a full collection looks at it
        del garbage
        assert gone() is not None
        release_regularly(asyncio.get_running_loop(), 0.01)
        async with asyncio.timeout(20):
            await collected.wait()

    run(work())


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


class Cancelling(asyncio.Protocol):
    """A protocol that cancels the task that opens its connection, once the handshake is done."""

    def __init__(self) -> None:
        self.transport: asyncio.BaseTransport | None = None
        self.opening = asyncio.current_task()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        assert self.opening is not None
        self.opening.cancel()


def test_a_connection_that_is_cancelled_after_its_handshake_is_aborted(tmp_path: Path) -> None:
    write_pair(tmp_path)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE

    async def work() -> None:
        loop = asyncio.get_running_loop()
        with listening() as server:
            sock = connected(server)
            descriptor = sock.fileno()
            peer, _ = server.accept()
            accepting = asyncio.create_task(
                asyncio.to_thread(serving.wrap_socket, peer, server_side=True)
            )
            opening = asyncio.create_task(
                loop.create_connection(Cancelling, sock=sock, ssl=trusting, server_hostname="x")
            )
            with pytest.raises(asyncio.CancelledError):
                await opening
            for _ in range(5):
                await asyncio.sleep(0)
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(descriptor)
            with suppress(OSError):
                (await accepting).close()

    run(work())
