"""HTTP/1.1 for short requests and answers on persistent connections.

The parser is llhttp's, through httptools. Compared with a general server, this saves a request
object, a task and a response object per review (docs/decisions/0007). Whatever a peer sends, a
connection holds one request of limited size, for a limited time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Protocol, cast

import httptools

from pergola.admission.accepting import Accepted
from pergola.admission.connections import GROWN_BYTES, LARGE, Connections, weight
from pergola.runtime.logging import get_logger

log = get_logger("admission-server")

HEADER_LIMIT: Final = 64 * 1024
_UNCONNECTED: Final = asyncio.Transport()
_TUNNEL: Final = b"CONNECT"


class Endpoint(Protocol):
    """The handler of one path: maps content type and body to an answer body."""

    def __call__(self, content_type: str, body: bytes, peer: str = "") -> bytes | Awaitable[bytes]:
        """Answer a request of a peer; directly unless something must be awaited."""
        ...

    def too_large(self, limit: str) -> bytes:
        """Answer a request that exceeds a limit, such as `7340032 bytes`, without decoding it."""
        ...


@dataclass(slots=True)
class Shared:
    """State that the connections of a server share.

    Attributes:
        start: starts a task in the server's task group.
    """

    endpoints: Mapping[str, Endpoint]
    connections: Connections
    start: Callable[[Coroutine[None, None, None]], asyncio.Task[None]]
    draining: bool = False
    rested: asyncio.Event = field(default_factory=asyncio.Event)

    async def drain(self, seconds: float) -> None:
        """Let requests in flight finish within `seconds`, then close all connections."""
        self.draining = True
        for connection in self.connections.idle():
            connection.expire()
        try:
            async with asyncio.timeout(seconds):
                while self.connections.busy():
                    self.rested.clear()
                    await self.rested.wait()
        except TimeoutError:
            log.info("requests abandoned", number=len(self.connections.busy()))
        for connection in [*self.connections.idle(), *self.connections.busy()]:
            connection.abort()


@dataclass(slots=True)
class _Incoming:
    """The request that is being received.

    Attributes:
        size: bytes of the body so far.
        header_bytes: bytes of complete headers.
        total: bytes so far, including headers and the framing of chunks.
    """

    url: bytes = b""
    content_type: str = ""
    body: list[bytes] = field(default_factory=list)
    size: int = 0
    total: int = 0
    header_bytes: int = 0
    too_large: bool = False
    continues: bool = False


class _Pipelined(Exception):
    """A request started before the previous one was answered."""


class Connection(Accepted):
    """One connection: receive a request, answer it, wait for the next.

    Attributes:
        peer: the address; empty if unknown.
        deadline: when the server stops waiting for the peer, on the event loop's clock.
        since: when it was accepted, became idle, or began a request other than its first.
        was_used: whether it has sent a whole request.
    """

    def __init__(self, shared: Shared, peer: str = "") -> None:
        self._shared = shared
        self._all = shared.connections
        super().__init__(self._all.buffer)
        self._limits = self._all.limits
        self._parser = httptools.HttpRequestParser(self)
        self._transport = _UNCONNECTED
        self._incoming = _Incoming()
        self._receiving = False
        self._task: asyncio.Task[None] | None = None
        self._is_last = False
        self._grown = 0
        self._unsent = 0
        self._deciding = 0
        self._closing = False
        self.peer = peer
        self.since = self._all.now()
        self.deadline = float("inf")
        self.was_used = False

    @property
    def is_busy(self) -> bool:
        """Whether a request is being received or answered."""
        return self.is_answering or self._receiving

    @property
    def is_answering(self) -> bool:
        """Whether a whole request was received and is being answered."""
        return self._task is not None

    def expire(self) -> None:
        """End the connection because its deadline has passed."""
        if self._closing or self._transport is _UNCONNECTED:
            self.abort()
        elif self._receiving:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        else:
            self._close()

    def abort(self) -> None:
        """Close the connection, or its handshake, at once."""
        self._closing = True
        if self._transport is _UNCONNECTED:
            if self.handshake is not None:
                self.handshake.cancel()
        else:
            self._transport.abort()

    # asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the first request."""
        # uvloop's transports do not derive from asyncio's classes but have all of their methods.
        self._transport = cast("asyncio.Transport", transport)
        if self._closing:
            self._transport.abort()
        patience = min(self._limits.first_request_seconds, self._limits.idle_seconds)
        self.deadline = self._all.now() + patience

    def data_received(self, data: bytes) -> None:
        """Feed the parser.

        Nothing is read while a request is being answered: API servers do not pipeline, and other
        clients resend the request after the connection closes.
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
        """Stop reading requests until the peer has received its answers."""
        unsent = self._transport.get_write_buffer_size()
        if not self._all.hold(unsent):
            self.abort()
            return
        self._unsent = unsent
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Resume reading: the peer has received its answers."""
        self._all.hold(-self._unsent)
        self._unsent = 0
        if not (self._is_last or self._closing):
            self.deadline = self._all.now() + self._limits.idle_seconds
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection's memory, and cancel its handler."""
        self._all.leave(self)
        self._drop_body()
        self._all.hold(-self._grown - self._unsent - self._deciding)
        self._grown = self._unsent = self._deciding = 0
        if self._task is not None:
            self._task.cancel()
        self._shared.rested.set()

    # httptools

    def on_message_begin(self) -> None:
        """Begin a request; its first bytes are already counted."""
        if self._task is not None or self._closing:
            raise _Pipelined
        self._incoming = _Incoming(total=self._incoming.total)
        self._receiving = True
        now = self._all.now()
        self.deadline = now + self._limits.receive_seconds
        if self.was_used:
            self.since = now

    def on_url(self, url: bytes) -> None:
        """Add to the target, which may arrive in pieces."""
        self._incoming.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store the relevant headers."""
        self._incoming.header_bytes += len(name) + len(value)
        if self._incoming.header_bytes > HEADER_LIMIT:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        lowered = name.lower()
        if lowered == b"content-type":
            self._incoming.content_type = value.decode("latin-1")
        elif lowered == b"content-length":
            self._incoming.too_large = int(value) > self._limits.body
        elif lowered == b"expect":
            self._incoming.continues = value.lower() == b"100-continue"

    def on_headers_complete(self) -> None:
        """Reject the request before its body arrives, if possible."""
        if self._parser.should_upgrade() or self._parser.get_method() == _TUNNEL:
            self._refuse(HTTPStatus.NOT_IMPLEMENTED)
        elif self._incoming.too_large:
            self._answer_too_large(f"{self._limits.body} bytes")
        elif self._incoming.continues:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Add a piece of the body."""
        if self._closing:
            return
        grown = GROWN_BYTES if not self._grown and self._incoming.size + len(body) > LARGE else 0
        if not self._all.hold(len(body) + grown):
            # Not gracefully: that would mean receiving the rest of what the peer sends.
            self.abort()
            return
        self._grown += grown
        self._incoming.body.append(body)
        self._incoming.size += len(body)
        if self._incoming.size > self._limits.body:
            self._answer_too_large(f"{self._limits.body} bytes")

    def on_message_complete(self) -> None:
        """Answer the request."""
        if self._closing:
            return
        self.was_used = True
        endpoint, pieces = self._endpoint(), self._incoming.body
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._drop_body()
        if endpoint is None:
            self._write(HTTPStatus.NOT_FOUND, b"404 page not found\n", b"text/plain")
            return
        values, size = weight(body)
        if values > self._limits.values:
            self._answer_too_large(f"{self._limits.values} values")
        elif not self._all.hold(size):
            self.abort()
        else:
            self._deciding = size
            self._answer(endpoint, body)

    # Answering

    def _answer(self, endpoint: Endpoint, body: bytes) -> None:
        answer = endpoint(self._incoming.content_type, body, self.peer)
        if isinstance(answer, bytes):
            self._decided()
            self._write(HTTPStatus.OK, answer)
            return
        self._receiving = False
        self.deadline = float("inf")  # the endpoint has its own time limit
        self._task = self._shared.start(self._wait(answer))

    async def _wait(self, answer: Awaitable[bytes]) -> None:
        try:
            body = await answer
        except Exception as error:  # endpoints answer errors themselves; this one has a bug
            log.error("endpoint failed", error=repr(error))
            self._task = None
            self._decided()
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR)
            return
        self._task = None
        self._decided()
        self._write(HTTPStatus.OK, body)

    def _decided(self) -> None:
        self._all.hold(-self._deciding)
        self._deciding = 0

    def _stop_reading(self) -> None:
        """Make the current answer the last one, after invalid or pipelined data."""
        if self._task is None:
            self._refuse(HTTPStatus.BAD_REQUEST)
        else:
            self._is_last = True
            self._transport.pause_reading()

    def _write(
        self, status: HTTPStatus, body: bytes, content_type: bytes = b"application/json"
    ) -> None:
        # Large bodies grow the TLS buffers, so close the connection.
        may_stay = not (self._is_last or self._grown or self._shared.draining)
        stays = may_stay and self._parser.should_keep_alive()
        self._rest()
        self._transport.write(_response(status, body, content_type, stays=stays))
        if self._unsent:
            self.deadline = self._all.now() + self._limits.receive_seconds
        if not stays:
            self._close()

    def _answer_too_large(self, limit: str) -> None:
        endpoint = self._endpoint()
        self._drop_body()
        if endpoint is None:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        body = endpoint.too_large(limit)
        self._transport.write(_response(HTTPStatus.OK, body, b"application/json", stays=False))
        self._close()

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer with an error and close: the rest of this connection cannot be trusted."""
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
        # A peer that does not read the answer also has limited time.
        self.deadline = self._all.now() + self._limits.receive_seconds
        self._shared.rested.set()

    def _rest(self) -> None:
        """Wait for the next request."""
        self._receiving = False
        self._incoming = _Incoming()
        self.since = self._all.now()
        self.deadline = self.since + self._limits.idle_seconds
        if self._shared.draining:
            self._shared.rested.set()

    def _drop_body(self) -> None:
        self._all.hold(-self._incoming.size)
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
