"""Forwarding of ports; here both sides are this machine's own network."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator

import pytest

from pergola.sandbox.errors import SandboxError
from pergola.sandbox.node import kernel
from pergola.sandbox.node.forwarder import Address, Forwarder


@pytest.fixture
async def forwarder(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Forwarder]:
    monkeypatch.setattr(kernel, "enter_network", lambda descriptor: None)  # needs root
    outside = os.open("/proc/self/ns/net", os.O_RDONLY)
    forwarder = Forwarder(outside)
    yield forwarder
    await forwarder.close_all()
    os.close(outside)


@pytest.fixture
async def echo() -> AsyncIterator[Address]:
    """A server that echoes its input once the input has ended."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read())
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield Address(*server.sockets[0].getsockname())


async def ask(at: Address, text: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(*at)
    writer.write(text)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


async def test_both_directions_are_forwarded_until_they_end(
    forwarder: Forwarder, echo: Address
) -> None:
    text = os.urandom(1 << 20)

    assert await ask(await forwarder.forward(echo), text) == text


async def test_a_target_keeps_its_port_when_another_is_forwarded(
    forwarder: Forwarder, echo: Address
) -> None:
    first = await forwarder.forward(echo)
    other = await forwarder.forward(Address("127.0.0.1", 1))

    assert first != other
    assert await forwarder.forward(echo) == first
    assert await ask(first, b"still there") == b"still there"


async def test_a_chosen_address_follows_its_target(forwarder: Forwarder, echo: Address) -> None:
    at = Address("127.77.1.2", (await forwarder.forward(echo)).port)
    await forwarder.forward(Address("127.0.0.1", 1), at)

    assert await forwarder.forward(echo, at) == at
    assert await ask(at, b"now here") == b"now here"


async def test_port_0_selects_a_free_port_of_127_0_0_1(forwarder: Forwarder, echo: Address) -> None:
    await forwarder.forward(echo, Address("127.77.1.5", 0))

    assert (await forwarder.forward(echo)).host == "127.0.0.1"


async def test_all_ports_of_an_address_are_closed_and_no_others(
    forwarder: Forwarder, echo: Address
) -> None:
    kept = await forwarder.forward(echo)
    at = await forwarder.forward(echo, Address("127.77.1.3", 0))

    forwarder.close("127.77.1.3")

    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*at)
    assert await ask(kept, b"kept") == b"kept"


async def test_an_address_in_use_is_reported(forwarder: Forwarder, echo: Address) -> None:
    with socket.socket() as taken:
        taken.bind(("127.77.1.4", 0))
        taken.listen()
        at = Address(*taken.getsockname())

        with pytest.raises(SandboxError, match=rf"cannot listen on 127.77.1.4:{at.port}: Address"):
            await forwarder.forward(echo, at)


async def test_a_target_that_refuses_ends_the_connection(forwarder: Forwarder) -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        at = await forwarder.forward(Address(*unheard.getsockname()))

        assert await ask(at, b"") == b""


async def test_an_offered_port_is_always_reached_at_the_same_address(
    forwarder: Forwarder, echo: Address
) -> None:
    at = await forwarder.offer(echo.port, "127.0.0.1")

    assert at.port != echo.port
    assert await forwarder.offer(echo.port, "127.0.0.1") == at
    assert await ask(at, b"outward") == b"outward"


async def test_an_offered_port_on_which_nothing_listens_ends_the_connection(
    forwarder: Forwarder,
) -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        at = await forwarder.offer(unheard.getsockname()[1], "127.0.0.1")

        assert await ask(at, b"") == b""


async def test_an_offered_port_is_reached_at_a_port_of_choice(
    forwarder: Forwarder, echo: Address
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = taken.getsockname()[1]
        with pytest.raises(SandboxError, match=f"cannot listen on 127.0.0.1:{busy}"):
            await forwarder.offer(echo.port, "127.0.0.1", busy)
    at = await forwarder.offer(echo.port, "127.0.0.1", busy)
    assert at.port == busy
    assert await ask(at, b"outward") == b"outward"
