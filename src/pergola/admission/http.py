"""HTTP/1.1 for one purpose: short posts and short answers on connections that stay open.

The parser is llhttp's, through httptools. What is spared here, compared with a general server, is a
request object, a task and a response object for each review (docs/decisions/0007). Whatever a peer
sends, a connection holds one request of limited size, and has limited time for it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Protocol, cast

import httptools

from pergola.runtime.logging import get_logger

log = get_logger("admission-server")

HEADER_LIMIT: Final = 64 * 1024
LARGE: Final = 32 * 1024
_BUFFERS: Final = 512 * 1024  # what TLS holds for a connection that carried a large body
_NOWHERE: Final = asyncio.Transport()  # before a connection is made, and for nobody


class Endpoint(Protocol):
    """What is served at one path: from content type and body to a body."""

    def __call__(self, content_type: str, body: bytes) -> bytes | Awaitable[bytes]:
        """The answer; at once where nobody else has to be asked."""
        ...

    def too_large(self) -> bytes:
        """The answer to a body that exceeds the limit; it was not read."""
        ...


@dataclass(slots=True)
class Limits:
    """What peers may use.

    Attributes:
        body: bytes of one body.
        bodies: bytes of all bodies that are being received together, with the buffers of large
            ones.
        connections: how many there may be; further ones are closed at once.
        receive_seconds: for one request, from its first byte to its last.
        idle_seconds: between two requests; longer than API servers keep connections.
    """

    body: int = 7 * 1024 * 1024
    bodies: int = 128 * 1024 * 1024
    connections: int = 2000
    receive_seconds: float = 10.0
    idle_seconds: float = 180.0


@dataclass(slots=True)
class Shared:
    """What the connections of a server have in common."""

    endpoints: dict[str, Endpoint]
    limits: Limits
    now: Callable[[], float]
    connections: "set[Connection]" = field(default_factory=set)
    received: int = 0
    draining: bool = False
    rested: asyncio.Event = field(default_factory=asyncio.Event)

    async def drain(self, seconds: float) -> None:
        """Lets what is under way end, for some seconds, and ends all connections."""
        self.draining = True
        for connection in [c for c in self.connections if not c.is_busy]:
            connection.expire()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while any(connection.is_busy for connection in self.connections):
                    self.rested.clear()
                    await self.rested.wait()
        for connection in list(self.connections):
            connection.abort()

    def sweep(self) -> None:
        """Closes connections whose time is over; to be called every second or so."""
        now = self.now()
        for connection in [c for c in self.connections if c.deadline < now]:
            connection.expire()


@dataclass(slots=True)
class _Incoming:
    """The request that is being received.

    Attributes:
        size: bytes of the body so far.
        named_bytes: bytes of headers that are complete.
        total: bytes so far, with headers, and what frames the chunks of a body.
    """

    url: bytes = b""
    content_type: str = ""
    body: list[bytes] = field(default_factory=list)
    size: int = 0
    total: int = 0
    named_bytes: int = 0
    too_large: bool = False
    continues: bool = False


class _TooEarly(Exception):
    """A request began before the last one was answered."""


class Connection(asyncio.Protocol):
    """One connection: receives a request, answers it, and waits for the next.

    Attributes:
        deadline: on the event loop's clock; when patience with the peer ends.
    """

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._parser = httptools.HttpRequestParser(self)
        self._transport = _NOWHERE
        self._incoming = _Incoming()
        self._receiving = False
        self._task: asyncio.Task[None] | None = None
        self._is_last = False
        self._buffers = 0
        self._closing = False
        self.deadline = float("inf")

    @property
    def is_busy(self) -> bool:
        """Whether a request is being received or answered."""
        return self._task is not None or self._receiving

    def expire(self) -> None:
        """The time for the next request, for the rest of this one, or for the end is over."""
        if self._closing:
            self._transport.abort()
        elif self._receiving:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        else:
            self._close()

    def abort(self) -> None:
        """Ends at once."""
        self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Counts, and refuses what is too many."""
        # uvloop's are none of asyncio's classes, but have all of their methods.
        self._transport = cast("asyncio.Transport", transport)
        self._shared.connections.add(self)
        self._rest()
        if len(self._shared.connections) > self._shared.limits.connections:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)

    def data_received(self, data: bytes) -> None:
        """Feeds the parser.

        What comes while a request is being answered is not read: no API server sends a request
        before it has the last one's answer, and others send it again when the connection closes.
        """
        if self._closing or self._is_last:
            return
        if self._task is not None:
            self._stop_reading()
            return
        self._incoming.total += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(HTTPStatus.NOT_IMPLEMENTED)
        except httptools.HttpParserError:
            self._stop_reading()
        if self._receiving and self._incoming.total - self._incoming.size > HEADER_LIMIT:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def pause_writing(self) -> None:
        """The peer does not take its answers: it is not listened to until it does."""
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """The peer has taken its answers."""
        if not self._is_last:
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Whoever waited for the answer is gone: nobody needs it."""
        self._shared.connections.discard(self)
        self._shared.rested.set()
        self._drop_body()
        self._shared.received -= self._buffers
        if self._task is not None:
            self._task.cancel()

    # httptools

    def on_message_begin(self) -> None:
        """A new request; its first bytes were counted already."""
        if self._task is not None or self._closing:
            raise _TooEarly
        self._incoming = _Incoming(total=self._incoming.total)
        self._receiving = True
        self.deadline = self._shared.now() + self._shared.limits.receive_seconds

    def on_url(self, url: bytes) -> None:
        """The target, perhaps in pieces."""
        self._incoming.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._incoming.named_bytes += len(name) + len(value)
        if self._incoming.named_bytes > HEADER_LIMIT:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        lowered = name.lower()
        if lowered == b"content-type":
            self._incoming.content_type = value.decode("latin-1")
        elif lowered == b"content-length":
            self._incoming.too_large = int(value) > self._shared.limits.body
        elif lowered == b"expect":
            self._incoming.continues = value.lower() == b"100-continue"

    def on_headers_complete(self) -> None:
        """What is known to be too large is answered before it is sent."""
        if self._incoming.too_large:
            self._answer_too_large()
        elif self._incoming.continues:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        if self._closing:
            return
        self._incoming.body.append(body)
        self._incoming.size += len(body)
        self._shared.received += len(body)
        if self._incoming.size > LARGE and not self._buffers:
            self._buffers = _BUFFERS
            self._shared.received += _BUFFERS
        if self._incoming.size > self._shared.limits.body:
            self._answer_too_large()
        elif self._shared.received > self._shared.limits.bodies:
            # At once: a connection that ends in peace still receives what its peer has to send.
            self._closing = True
            self._transport.abort()

    def on_message_complete(self) -> None:
        """The request is here: answer it."""
        if self._closing:
            return
        endpoint, pieces = self._endpoint(), self._incoming.body
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._drop_body()
        if endpoint is None:
            self._write(HTTPStatus.NOT_FOUND, b"404 page not found\n", b"text/plain")
            return
        answer = endpoint(self._incoming.content_type, body)
        if isinstance(answer, bytes):
            self._write(HTTPStatus.OK, answer)
            return
        self._receiving = False
        self.deadline = float("inf")  # the endpoint has a budget of its own
        self._task = asyncio.get_running_loop().create_task(self._wait(answer))

    # Answering

    async def _wait(self, answer: Awaitable[bytes]) -> None:
        try:
            body = await answer
        except Exception as error:  # an endpoint answers whatever happens; this one has a bug
            log.error("endpoint failed", error=repr(error))
            self._task = None
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR)
            return
        self._task = None
        self._write(HTTPStatus.OK, body)

    def _stop_reading(self) -> None:
        """What comes is not understood, or comes too early: then the answer is the last one."""
        if self._task is None:
            self._refuse(HTTPStatus.BAD_REQUEST)
        else:
            self._is_last = True
            self._transport.pause_reading()

    def _write(
        self, status: HTTPStatus, body: bytes, content_type: bytes = b"application/json"
    ) -> None:
        # Buffers that have grown stay as long as their connection: it shall not stay long.
        may_stay = not (self._is_last or self._buffers or self._shared.draining)
        stays = may_stay and self._parser.should_keep_alive()
        self._transport.write(_response(status, body, content_type, stays=stays))
        self._rest()
        if not stays:
            self._close()

    def _answer_too_large(self) -> None:
        endpoint = self._endpoint()
        self._drop_body()
        if endpoint is None:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        answer = _response(HTTPStatus.OK, endpoint.too_large(), b"application/json", stays=False)
        self._transport.write(answer)
        self._close()

    def _refuse(self, status: HTTPStatus) -> None:
        """Says so, and closes: what follows on this connection cannot be trusted."""
        if self._closing:
            return
        text = f"{status.value} {status.phrase}\n".encode()
        self._transport.write(_response(status, text, b"text/plain", stays=False))
        self._close()

    def _close(self) -> None:
        self._closing = True
        self._receiving = False
        self._drop_body()
        self._transport.close()
        # A peer that does not take the answer is not waited for either.
        self.deadline = self._shared.now() + self._shared.limits.receive_seconds
        self._shared.rested.set()

    def _rest(self) -> None:
        """Nothing is under way; the next request may take its time."""
        self._receiving = False
        self._incoming = _Incoming()
        self.deadline = self._shared.now() + self._shared.limits.idle_seconds
        if self._shared.draining:
            self._shared.rested.set()

    def _drop_body(self) -> None:
        self._shared.received -= self._incoming.size
        self._incoming.body, self._incoming.size = [], 0

    def _endpoint(self) -> Endpoint | None:
        path = self._incoming.url.partition(b"?")[0].decode("latin-1")
        return self._shared.endpoints.get(path)


def _response(status: HTTPStatus, body: bytes, content_type: bytes, *, stays: bool) -> bytes:
    return b"HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s\r\n%s" % (
        status.value,
        status.phrase.encode(),
        content_type,
        len(body),
        b"" if stays else b"Connection: close\r\n",
        body,
    )
