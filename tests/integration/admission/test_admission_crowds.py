"""The admission server under many connections, and with unauthenticated clients."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from pergola.admission.certificates import Certificates, ServingError
from pergola.admission.connections import Limits
from pergola.admission.server import dials
from pergola.pki import Authority
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import PATIENCE
from tests.support.admission_site import (
    DAY,
    PATH,
    Served,
    read_answer,
    request,
    review,
    serving,
    write_pair,
)

PATIENT = Limits(first_request_seconds=600, receive_seconds=600)
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    write_pair(tmp_path)
    async with serving(tmp_path) as server:
        yield server


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Wait until the server ends a connection."""
    async with asyncio.timeout(PATIENCE):
        with suppress(ConnectionError, ssl.SSLError):
            assert await reader.read() == b""
    return True


async def hold(served: Served, number: int) -> list[Streams]:
    """Open connections that do not send a request; the first one is the oldest."""
    found = [await served.connect()]
    while len(found) < number:
        several = min(20, number - len(found))
        found += await asyncio.gather(*(served.connect() for _ in range(several)))
    return found


async def test_idle_connections_do_not_lock_out_new_callers(tmp_path: Path) -> None:
    write_pair(tmp_path)
    async with serving(tmp_path, Limits(connections=100, connections_per_peer=100)) as served:
        held = await hold(served, 100)
        for _ in range(20):
            assert await served.works()
        assert await is_closed(held[0][0]), "the connection that was idle longest was not closed"
        for _, writer in held:
            writer.close()


async def test_connections_that_sent_a_request_outlast_those_that_never_did(
    tmp_path: Path,
) -> None:
    write_pair(tmp_path)
    async with serving(tmp_path, Limits(connections=40, connections_per_peer=40)) as served:
        reader, writer = await served.connect()
        writer.write(request(review()))
        await read_answer(reader)
        held = await hold(served, 60)
        writer.write(request(review()))
        assert b'"allowed":true' in await read_answer(reader)
        writer.close()
        for _, idle in held:
            idle.close()


async def test_one_peer_cannot_take_all_connections(tmp_path: Path) -> None:
    write_pair(tmp_path)
    async with serving(tmp_path, Limits(connections=100, connections_per_peer=40)) as served:
        other, others = await served.connect(source="127.0.0.2")
        held = await hold(served, 60)
        assert await is_closed(held[0][0]), "a peer at its limit must lose a connection of its own"
        others.write(request(review()))
        assert b'"allowed":true' in await read_answer(other)
        others.close()
        for _, writer in held:
            writer.close()


async def test_busy_connections_are_not_evicted_and_new_callers_are_refused(tmp_path: Path) -> None:
    write_pair(tmp_path)
    async with serving(tmp_path, Limits(connections=20, connections_per_peer=20)) as served:
        busy = await hold(served, 20)
        for _, writer in busy:
            served.entered.clear()
            writer.write(request(review("slow")))
            await served.entered.wait()
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await served.connect()
        served.may_answer.set()
        for reader, writer in busy:
            assert b'"allowed":true' in await read_answer(reader)
            writer.close()
        assert await served.works()


@pytest.mark.parametrize(
    "begun",
    [b"P", b"POST /x HTTP/1.1\r\nHost: x\r\n", request(review())[:-1]],
    ids=["one byte", "some headers", "all but the last byte"],
)
async def test_begun_requests_do_not_lock_out_new_callers(tmp_path: Path, begun: bytes) -> None:
    write_pair(tmp_path)
    limits = replace(PATIENT, connections=100, connections_per_peer=40)
    async with serving(tmp_path, limits) as served:
        held = await hold(served, 40)
        for _, writer in held:
            writer.write(begun)
        for _ in range(20):
            assert await served.works()
        assert await is_closed(held[0][0]), "the oldest begun request was not ended"
        for _, writer in held:
            writer.close()


@pytest.mark.parametrize("idle", [0, 1])
async def test_begun_requests_on_used_connections_do_not_lock_out_new_callers(
    tmp_path: Path, idle: int
) -> None:
    """An idle connection is ended first, and then the oldest that is receiving a request."""
    write_pair(tmp_path)
    limits = replace(PATIENT, connections=40, connections_per_peer=40)
    async with serving(tmp_path, limits) as served:
        held = await hold(served, 40)
        for reader, writer in held:
            writer.write(request(review()))
            await read_answer(reader)
        for _, writer in held[: len(held) - idle]:
            writer.write(b"POST ")
        for _ in range(20):
            assert await served.works()
        assert await is_closed(held[-idle][0])
        for _, writer in held:
            writer.close()


async def test_a_peer_that_never_sends_a_request_is_disconnected_soon(tmp_path: Path) -> None:
    assert Limits().first_request_seconds <= 10
    write_pair(tmp_path)
    # Long enough for the peer that does send a request, even on a busy machine.
    limits = Limits(first_request_seconds=5.0, idle_seconds=600)
    async with serving(tmp_path, limits) as served:
        silent, waiting = await served.connect()
        spoke, speaking = await served.connect()
        speaking.write(request(review()))
        await read_answer(spoke)
        assert await is_closed(silent)
        speaking.write(request(review()))
        assert b'"allowed":true' in await read_answer(spoke)
        for writer in (waiting, speaking):
            writer.close()


async def test_connections_without_a_handshake_count(tmp_path: Path) -> None:
    write_pair(tmp_path)
    async with serving(tmp_path, Limits(connections=50, connections_per_peer=50)) as served:
        sockets = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(60)]
        for _ in range(5):
            assert await served.works()
        first = sockets[0]
        first.settimeout(0)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(PATIENCE):
            with suppress(ConnectionError):
                assert await loop.sock_recv(first, 1) == b""
        for one in sockets:
            one.close()


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        b"POST %s HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: upgrade\r\n"
        b"Content-Type: application/json\r\nContent-Length: 0\r\n\r\n" % PATH.encode(),
        b"CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
async def test_an_upgrade_gets_one_answer(served: Served, head: bytes) -> None:
    reader, writer = await served.connect()
    writer.write(head)
    async with asyncio.timeout(PATIENCE):
        answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 501")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert await served.works()


# Memory


def dense(values: int) -> bytes:
    """Return a small review whose object has very many values."""
    head, tail = review()[:-3], b"," + b'"x":[' + b"{}," * values + b"{}]}}}"
    return head + tail


async def test_a_review_with_too_many_values_is_refused_before_it_is_decoded(
    served: Served,
) -> None:
    response = (await served.post(dense(1_000_000)))["response"]
    assert (response["allowed"], response["status"]["code"]) == (False, 413)
    assert "values" in response["status"]["message"]
    assert (await served.post(dense(10_000)))["response"]["allowed"]


async def test_requests_waiting_for_their_handler_count_against_the_budget(
    tmp_path: Path,
) -> None:
    write_pair(tmp_path)
    async with serving(tmp_path, Limits(bodies=10_000_000)) as served:
        body = orjson.dumps(orjson.loads(review("slow")) | {"padding": [0] * 100_000})
        first, holding = await served.connect()
        holding.write(request(body))
        await served.entered.wait()
        second, refused = await served.connect()
        refused.write(request(body))
        assert await is_closed(second)
        served.may_answer.set()
        assert b'"allowed":true' in await read_answer(first)
        for writer in (holding, refused):
            writer.close()
        assert await served.works()


async def test_the_memory_budget_is_restored_after_all_connections_close(tmp_path: Path) -> None:
    write_pair(tmp_path)
    # Enough for one large body with its buffers, and no more.
    async with serving(tmp_path, Limits(bodies=1_700_000, receive_seconds=1.0)) as served:

        async def abuse(number: int) -> None:
            with suppress(ConnectionError, ssl.SSLError):
                reader, writer = await served.connect()
                writer.write(request(b" " * 400_000)[: 50_000 + 30_000 * number])
                if number % 2:
                    writer.transport.abort()
                    return
                await read_answer(reader)
                writer.close()

        large = review() + b" " * 500_000
        assert (await served.post(large))["response"]["allowed"]
        for _ in range(5):
            await asyncio.gather(*(abuse(number) for number in range(13)))
        answer = b""
        async with asyncio.timeout(PATIENCE):
            while not answer.startswith(b"HTTP/1.1 200"):
                with suppress(ConnectionError, ssl.SSLError):
                    answer = await served.send(request(large))


# Client certificates


async def is_served(served: Served, client: Authority | None) -> bool:
    """Return whether a client gets an answer; without an authority, it presents no certificate."""
    answer = b""
    with suppress(ConnectionError, ssl.SSLError):
        reader, writer = await served.connect(client=client)
        try:
            writer.write(request(review()))
            answer = await read_answer(reader)
        finally:
            writer.close()
    return b'"allowed":true' in answer


async def test_with_a_client_ca_unauthenticated_clients_fail_the_handshake(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    trusted, other = (Authority.create(name, now, DAY) for name in ("trusted", "other"))
    write_pair(tmp_path)
    client_ca = tmp_path / "client-ca.crt"
    client_ca.write_bytes(trusted.pair.public)
    async with serving(tmp_path, client_ca=client_ca) as served:
        assert not await is_served(served, None)
        assert not await is_served(served, other)
        assert await is_served(served, trusted)
        # The readiness check needs no certificate.
        assert await dials("127.0.0.1", served.port) is None


async def test_a_new_client_ca_replaces_the_old_one(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    old, new = (Authority.create(name, now, DAY) for name in ("old", "new"))
    write_pair(tmp_path)
    client_ca = tmp_path / "client-ca.crt"
    client_ca.write_bytes(old.pair.public)
    async with serving(tmp_path, client_ca=client_ca) as served:
        client_ca.write_bytes(new.pair.public + b"\n")
        served.certificates.observe()
        assert await is_served(served, new)
        assert not await is_served(served, old)


def test_a_client_ca_file_without_a_certificate_is_named(tmp_path: Path) -> None:
    write_pair(tmp_path)
    client_ca = tmp_path / "client-ca.crt"
    client_ca.write_text("nonsense")
    with pytest.raises(ServingError, match=r"client-ca\.crt does not contain a PEM certificate"):
        Certificates(tmp_path, Metrics().certificates(), client_ca)
    client_ca.unlink()
    with pytest.raises(ServingError, match=r"client-ca\.crt does not exist"):
        Certificates(tmp_path, Metrics().certificates(), client_ca)
