"""The admission server on real sockets: its answers and its robustness."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from pergola.admission import certificates
from pergola.admission.certificates import Certificates, ServingError
from pergola.admission.connections import LARGE, Limits
from pergola.admission.protocol import BODY_LIMIT
from pergola.admission.server import dials, serve
from pergola.pki.authorities import Authority
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.listening import ListenError
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


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    write_pair(tmp_path)
    async with serving(tmp_path) as server:
        yield server


async def test_a_connection_is_kept_alive_and_answered_in_order(served: Served) -> None:
    reader, writer = await served.connect()
    for name in ("a", "b", "c"):
        writer.write(request(review(name)))
        answer = await read_answer(reader)
        assert orjson.loads(answer.partition(b"\r\n\r\n")[2])["response"]["uid"] == f"uid-{name}"
    writer.write(request(review("d")) + request(review("e")))
    for name in ("d", "e"):
        assert f"uid-{name}".encode() in await read_answer(reader)
    writer.close()


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_client_that_pipelines_gets_only_the_first_answer(
    served: Served, at_once: bool
) -> None:
    reader, writer = await served.connect()
    if at_once:
        writer.write(request(review("slow")) + request(review("next")))
        await served.entered.wait()
    else:
        writer.write(request(review("slow")))
        await served.entered.wait()
        writer.write(request(review("next")))
        await writer.drain()
        assert await served.works()
    served.may_answer.set()
    answer = await read_answer(reader)
    assert b"uid-slow" in answer
    assert b"Connection: close" in answer
    async with asyncio.timeout(PATIENCE):
        assert await reader.read() == b""
    writer.close()


async def test_a_body_may_arrive_in_pieces(served: Served) -> None:
    reader, writer = await served.connect()
    raw = request(review())
    for start in range(0, len(raw), 40):
        writer.write(raw[start : start + 40])
        await writer.drain()
    assert b'"allowed":true' in await read_answer(reader)
    writer.close()


async def test_a_chunked_body_is_accepted(served: Served) -> None:
    body = review()
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    assert b'"allowed":true' in await served.send(head.encode() + chunks)


@pytest.mark.parametrize(
    ("raw", "starts"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 404"),
        (request(review(), "/nothing"), b"HTTP/1.1 404"),
        (b"nonsense\r\n\r\n", b"HTTP/1.1 400"),
        (b"\x00" * 100, b"HTTP/1.1 400"),
        (b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n", b"HTTP/1.1 400"),
        (
            b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
            b"HTTP/1.1 501",
        ),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", b"HTTP/1.1 431"),
    ],
)
async def test_anything_but_a_posted_review_has_a_defined_answer(
    served: Served, raw: bytes, starts: bytes
) -> None:
    assert (await served.send(raw)).startswith(starts)
    assert await served.works()


async def test_a_bad_review_is_answered_with_a_review(served: Served) -> None:
    for body, code in ((b"", 400), (b"garbage", 400), (b'{"kind":"Pod"}', 400)):
        response = (await served.post(body))["response"]
        assert (response["allowed"], response["status"]["code"]) == (False, code)
    assert await served.works()


@pytest.mark.parametrize("announced", [True, False])
async def test_an_oversized_body_is_refused_before_it_has_arrived(
    served: Served, announced: bool
) -> None:
    if announced:
        head = request(b"", PATH).replace(
            b"Content-Length: 0", f"Content-Length: {BODY_LIMIT + 1}".encode()
        )
        answer = await served.send(head)
    else:
        head = request(b"", PATH).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        reader, writer = await served.connect()
        writer.write(head + b"%x\r\n" % (2 * BODY_LIMIT) + b"x" * (BODY_LIMIT + 100_000))
        answer = await read_answer(reader)
        writer.close()
    response = orjson.loads(answer.partition(b"\r\n\r\n")[2])["response"]
    assert response["status"]["code"] == 413
    assert b"Connection: close" in answer
    assert await served.works()


async def test_the_memory_of_all_bodies_together_is_bounded(tmp_path: Path) -> None:
    write_pair(tmp_path)
    async with serving(tmp_path, Limits(bodies=700_000)) as served:
        head = request(b"", PATH).replace(b"Content-Length: 0", b"Content-Length: 80000")
        first, holding = await served.connect()
        holding.write(head + b" " * 79_000)
        await holding.drain()
        assert not first.at_eof()
        second, refused = await served.connect()
        refused.write(head + b" " * 79_000)
        with suppress(ConnectionResetError):
            assert await read_answer(second) == b""
        holding.close()
        refused.close()
        assert await served.works()


async def test_a_connection_is_closed_after_a_large_body(served: Served) -> None:
    reader, writer = await served.connect()
    writer.write(request(review() + b" " * LARGE))
    answer = await read_answer(reader)
    assert b'"allowed":true' in answer
    assert b"Connection: close" in answer
    async with asyncio.timeout(PATIENCE):
        assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize("endless", ["header", "trailer", "extension"])
async def test_headers_trailers_and_chunk_extensions_are_bounded_too(
    served: Served, endless: str
) -> None:
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    head += {
        "header": "X: ",
        "trailer": "\r\n2\r\n{}\r\n0\r\nX: ",
        "extension": "\r\n2;x=",
    }[endless]
    reader, writer = await served.connect()
    writer.write(head.encode())
    with suppress(ConnectionError):
        for _ in range(100):
            writer.write(b"y" * 10_000)
            await writer.drain()
    assert (await read_answer(reader)).startswith(b"HTTP/1.1 431")
    writer.close()
    assert await served.works()


async def test_the_server_stops_reading_from_a_client_that_reads_no_answers(tmp_path: Path) -> None:
    write_pair(tmp_path)
    limits = Limits(idle_seconds=2.0, receive_seconds=0.5)
    async with serving(tmp_path, limits) as served:
        reader, writer = await served.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined] # it is a socket's
        many, sent = request(review("x" * 900)) * 200, 0
        with suppress(ConnectionError):
            while sent < 50_000_000:
                writer.write(many)
                await writer.drain()
                sent += len(many)
        assert sent < 50_000_000
        assert await served.works()
        writer.transport.abort()
        del reader


async def test_a_slow_client_times_out_and_an_idle_one_is_disconnected(tmp_path: Path) -> None:
    write_pair(tmp_path)
    # A client that sends at once is never idle, even on a busy machine.
    limits = Limits(receive_seconds=0.3, idle_seconds=2.0)
    async with serving(tmp_path, limits) as served:
        slow, sending = await served.connect()
        sending.write(request(review())[:50])
        assert (await read_answer(slow)).startswith(b"HTTP/1.1 408")
        idle, waiting = await served.connect()
        async with asyncio.timeout(PATIENCE):
            assert await idle.read() == b""
        sending.close()
        waiting.close()
        assert await served.works()


async def test_one_more_client_is_served_beside_a_thousand_connections(tmp_path: Path) -> None:
    write_pair(tmp_path)
    async with serving(tmp_path, Limits(connections=1000)) as served:
        held: list[asyncio.StreamWriter] = []
        for _ in range(20):
            opened = await asyncio.gather(*(served.connect() for _ in range(50)))
            held += [writer for _, writer in opened]
        answer = await served.send(request(review()))
        assert answer.startswith(b"HTTP/1.1 200")
        for writer in held:
            writer.close()
        assert await served.works()


async def test_garbage_instead_of_a_handshake_is_harmless(served: Served) -> None:
    for nonsense in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" + b"\xff" * 200):
        reader, writer = await asyncio.open_connection("localhost", served.port)
        writer.write(nonsense)
        async with asyncio.timeout(PATIENCE):
            with suppress(ConnectionResetError):
                await reader.read()
        writer.close()
    assert await served.works()


async def test_a_client_that_disconnects_cancels_its_review(served: Served) -> None:
    _, writer = await served.connect()
    writer.write(request(review("slow")))
    await served.entered.wait()
    writer.transport.abort()
    in_flight = "controller_runtime_webhook_requests_in_flight"
    async with asyncio.timeout(PATIENCE):
        while served.metrics.registry.get_sample_value(in_flight, {"webhook": PATH}) != 0:
            await served.works()
    assert await served.works()


# Certificates


async def test_only_new_connections_get_a_new_certificate(served: Served, tmp_path: Path) -> None:
    old_reader, old_writer = await served.connect()
    authority = write_pair(tmp_path)
    served.certificates.observe()
    _, writer = await served.connect(authority)
    writer.close()
    old_writer.write(request(review()))
    assert b'"allowed":true' in await read_answer(old_reader)
    old_writer.close()
    reads = served.metrics.registry.get_sample_value("certwatcher_read_certificate_total")
    assert reads == 2


async def test_a_remounted_secret_is_reloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert certificates.CHECK_SECONDS <= 10
    monkeypatch.setattr(certificates, "CHECK_SECONDS", 0.01)
    authorities = []
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        authorities.append(write_pair(tmp_path / name))
    mounted = tmp_path / "data"
    mounted.symlink_to(tmp_path / "old")
    async with serving(mounted) as served:
        _, writer = await served.connect(authorities[0])
        writer.close()
        (tmp_path / "next").symlink_to(tmp_path / "new")
        (tmp_path / "next").rename(mounted)  # as the kubelet swaps mounted content
        reads = "certwatcher_read_certificate_total"
        async with asyncio.timeout(PATIENCE):
            while (served.metrics.registry.get_sample_value(reads) or 0) < 2:
                assert await served.works()
        _, writer = await served.connect(authorities[1])
        writer.close()


async def test_an_inconsistent_pair_leaves_the_old_one_in_use(tmp_path: Path) -> None:
    authority = write_pair(tmp_path)
    async with serving(tmp_path) as served:
        (tmp_path / "tls.crt").write_text("nonsense")
        served.certificates.observe()
        _, writer = await served.connect(authority)
        writer.close()
        now = datetime.now(UTC)
        other = Authority.create("other", now, DAY).issue_server("x", ("localhost",), now, DAY)
        (tmp_path / "tls.crt").write_bytes(other.public)  # its key has not been written yet
        served.certificates.observe()
        _, writer = await served.connect(authority)
        writer.close()
        name = "certwatcher_read_certificate_errors_total"
        assert served.metrics.registry.get_sample_value(name) == 2


@pytest.mark.parametrize("damage", ["missing", "nonsense", "mismatch"])
def test_a_server_does_not_start_without_a_usable_pair(tmp_path: Path, damage: str) -> None:
    write_pair(tmp_path)
    if damage == "missing":
        (tmp_path / "tls.key").unlink()
    elif damage == "nonsense":
        (tmp_path / "tls.crt").write_text("nonsense")
    else:
        key = (tmp_path / "tls.key").read_bytes()
        write_pair(tmp_path)
        (tmp_path / "tls.key").write_bytes(key)
    with pytest.raises(ServingError, match=str(tmp_path)):
        Certificates(tmp_path, Metrics().certificates())


# Start and end


async def test_readiness_is_a_handshake(served: Served) -> None:
    assert await dials("127.0.0.1", served.port) is None
    problem = await dials("127.0.0.1", 1)
    assert problem is not None
    assert "127.0.0.1:1" in problem


async def test_an_occupied_port_is_reported(served: Served, tmp_path: Path) -> None:
    with pytest.raises(ListenError, match="webhooks"):
        async with serve("127.0.0.1", served.port, {}, served.certificates):
            pass


async def test_pending_reviews_are_answered_at_shutdown(tmp_path: Path) -> None:
    write_pair(tmp_path)
    server = serving(tmp_path)
    served = await server.__aenter__()
    idle, _ = await served.connect()
    reader, writer = await served.connect()
    writer.write(request(review("slow")))
    await served.entered.wait()
    ending = asyncio.create_task(server.__aexit__(None, None, None))
    async with asyncio.timeout(PATIENCE):
        assert await idle.read() == b""
    with pytest.raises(ConnectionRefusedError):
        await served.connect()
    served.may_answer.set()
    answer = await read_answer(reader)
    assert b'"allowed":true' in answer
    assert b"Connection: close" in answer
    writer.close()
    await ending


async def test_a_shutdown_never_exceeds_its_time_limit(tmp_path: Path) -> None:
    write_pair(tmp_path)
    async with serving(tmp_path, grace=0.1) as served:
        reader, writer = await served.connect()
        writer.write(request(review("slow")))
        await served.entered.wait()
    with pytest.raises((ConnectionError, ssl.SSLError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)
    writer.close()
