"""Connections whose other side disappeared without closing them."""

import asyncio
import ctypes
import socket
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from pergola.kube.errors import Unreachable
from pergola.kube.transport import Transport
from tests.support.cluster_config import cluster_config

_SO_ATTACH_FILTER = 26
_DROP_ALL = struct.pack("HBBI", 0x06, 0, 0, 0)  # one BPF instruction: accept 0 bytes
_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
_EMPTY = b"2\r\n{}\r\n0\r\n\r\n"


linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux can drop the packets")


class Server:
    """A server that answers every path with `{}`, and `/stream` with one line and then silence."""

    def __init__(self) -> None:
        self.url = ""
        self.accepted: list[asyncio.StreamWriter] = []
        self.serving: list[asyncio.Task[None]] = []
        self.requests: list[tuple[str, int]] = []

    def vanish(self) -> None:
        """Drop every incoming packet, so that nothing is acknowledged."""
        program = ctypes.create_string_buffer(_DROP_ALL)
        for accepted in self.accepted:
            packed = struct.pack("HL", 1, ctypes.addressof(program))
            accepted.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, _SO_ATTACH_FILTER, packed
            )

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted.append(writer)
        number = len(self.accepted)
        if task := asyncio.current_task():
            self.serving.append(task)
        with suppress(asyncio.IncompleteReadError, OSError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split()[1].decode()
                self.requests.append((path, number))
                streams = path == "/stream"
                writer.write(_HEAD + (b"2\r\n1\n\r\n" if streams else _EMPTY))
                await writer.drain()


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server = Server()
    listening = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()
        for writer in server.accepted:
            writer.close()
        await asyncio.gather(*server.serving)


@asynccontextmanager
async def transport_to(server: Server) -> AsyncIterator[Transport]:
    transport = Transport(cluster_config(server.url), timeout=3600, dead_peer_seconds=2)
    try:
        yield transport
    finally:
        await transport.close()


async def follow(transport: Transport, server: Server) -> None:
    async with transport.stream("/stream", {}, accept="*/*", silence=3600) as lines:
        async for _ in lines:
            server.vanish()


async def write(transport: Transport, server: Server) -> None:
    await transport.request("GET", "/x")
    server.vanish()
    await transport.request("PATCH", "/x", body=b"{}")


@linux
@pytest.mark.parametrize("use", [follow, write])
async def test_a_vanished_server_is_detected_on_idle_and_busy_connections(
    use: Callable[[Transport, Server], Awaitable[None]],
) -> None:
    async with serving() as server, transport_to(server) as transport:
        with pytest.raises(Unreachable, match=server.url):
            async with asyncio.timeout(60):
                await use(transport, server)


@linux
async def test_a_read_on_a_dead_connection_is_sent_again_on_a_new_one() -> None:
    async with serving() as server, transport_to(server) as transport:
        await transport.request("GET", "/x")
        server.vanish()
        async with asyncio.timeout(60):
            assert await transport.request("GET", "/x") == b"{}"
    assert [number for _, number in server.requests] == [1, 2]


async def listen(transport: Transport) -> None:
    async with transport.stream("/stream", {}, accept="*/*", silence=0.1) as lines:
        async for _ in lines:
            await transport.request("GET", "/beside")


async def test_after_a_silent_stream_no_idle_connection_is_used_again() -> None:
    async with serving() as server, transport_to(server) as transport:
        with pytest.raises(Unreachable):
            await listen(transport)
        await transport.request("GET", "/after")
        await transport.request("GET", "/after")
    assert server.requests == [("/stream", 1), ("/beside", 2), ("/after", 3), ("/after", 3)]
