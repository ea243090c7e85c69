"""A running admission server, and raw connections to it.

    write_pair(folder)
    async with serving(folder) as served:
        answer = await served.post(review())

A review named `slow` waits for `served.may_answer`.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import orjson

from pergola.admission.certificates import Certificates
from pergola.admission.connections import Limits
from pergola.admission.protocol import Reviewer
from pergola.admission.review import Request, Verdict, allowed
from pergola.admission.server import serve
from pergola.api.objects import JsonObject
from pergola.pki.authorities import Authority
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import PATIENCE

PATH: Final = "/webhooks/x"
DAY: Final = timedelta(days=1)


def write_pair(directory: Path) -> bytes:
    """Write a fresh certificate for localhost; return its authority."""
    now = datetime.now(UTC)
    authority = Authority.create("ca", now, DAY)
    pair = authority.issue_server("server", ("localhost",), now, DAY)
    (directory / "tls.key").write_bytes(pair.private)
    (directory / "tls.crt").write_bytes(pair.public)
    return authority.pair.public


class Served:
    """A running server."""

    def __init__(self, port: int, pair: Certificates, metrics: Metrics) -> None:
        self.port = port
        self.certificates = pair
        self.metrics = metrics
        self.entered = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def connect(
        self,
        authority: bytes | None = None,
        source: str = "",
        client: Authority | None = None,
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection.

        Args:
            authority: verify the server's certificate with it.
            source: connect from this address.
            client: present a certificate of this authority.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if authority is None:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        else:
            context.load_verify_locations(cadata=authority.decode())
        if client is not None:
            _present(context, client)
        return await asyncio.open_connection(
            "localhost", self.port, ssl=context, local_addr=(source, 0) if source else None
        )

    async def send(self, raw: bytes) -> bytes:
        """Send bytes on a fresh connection and return the first response."""
        reader, writer = await self.connect()
        writer.write(raw)
        try:
            return await read_answer(reader)
        finally:
            writer.close()

    async def post(self, body: bytes, path: str = PATH) -> JsonObject:
        """Post a body and return the decoded answer."""
        answer = await self.send(request(body, path))
        assert answer.startswith(b"HTTP/1.1 200 OK"), answer
        value: JsonObject = orjson.loads(answer.partition(b"\r\n\r\n")[2])
        return value

    async def works(self) -> bool:
        """Return whether a new caller gets an answer."""
        return bool((await self.post(review()))["response"]["allowed"])


def _present(context: ssl.SSLContext, authority: Authority) -> None:
    pair = authority.issue_client("api-server", (), datetime.now(UTC), DAY)
    with TemporaryDirectory() as folder:
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate.write_bytes(pair.public)
        key.write_bytes(pair.private)
        context.load_cert_chain(certificate, key)


async def read_answer(reader: asyncio.StreamReader) -> bytes:
    """Return one response, or what was received before the server closed the connection."""
    async with asyncio.timeout(PATIENCE):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            return error.partial
        length = next(
            int(line.partition(b":")[2])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        return head + await reader.readexactly(length)


def request(body: bytes, path: str = PATH, *headers: str) -> bytes:
    """Render an HTTP request that posts a review."""
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: x",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def review(name: str = "web") -> bytes:
    """Render a review about a pod."""
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    return orjson.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": f"uid-{name}",
                "kind": kind,
                "resource": {"group": "", "version": "v1", "resource": "pods"},
                "name": name,
                "operation": "CREATE",
                "object": {"metadata": {"name": name}},
            },
        }
    )


@asynccontextmanager
async def serving(
    directory: Path,
    limits: Limits | None = None,
    grace: float = 5.0,
    client_ca: Path | None = None,
) -> AsyncGenerator[Served]:
    """Serve one endpoint with the certificate of a directory."""
    metrics = Metrics()
    pair = Certificates(directory, metrics.certificates(), client_ca)
    served: Served

    def handler(request: Request) -> Verdict | Awaitable[Verdict]:
        return wait() if request.name == "slow" else allowed()

    async def wait() -> Verdict:
        served.entered.set()
        await served.may_answer.wait()
        return allowed()

    endpoints = {PATH: Reviewer(PATH, handler, metrics.webhook(PATH))}
    async with serve("127.0.0.1", 0, endpoints, pair, limits=limits, grace=grace) as port:
        served = Served(port, pair, metrics)
        yield served
