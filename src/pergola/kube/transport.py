"""HTTP to one API server: TLS, credentials, rate limit, timeouts, and typed errors.

The only module that opens connections to a cluster. Other modules deal with objects, this one with
methods, paths and bytes.
"""

import asyncio
import io
import os
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from http.client import responses
from typing import Final, NamedTuple, TypeAlias

import aiohttp
import orjson
from multidict import CIMultiDict
from yarl import URL

from pergola import tracing
from pergola.api.objects import map_at
from pergola.kube.connections import DEAD_PEER_SECONDS, Connections
from pergola.kube.environment_proxy import environment_proxy
from pergola.kube.errors import (
    LONGEST_WAIT_SECONDS,
    ApiError,
    ConfigurationError,
    Sender,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    api_error,
)
from pergola.kube.guards import Guard, GuardedBody
from pergola.kube.kubeconfig import ClusterConfig, ssl_context
from pergola.kube.throttle import Throttle

USER_AGENT: Final = "pergola"
_ATTEMPTS_WHEN_THROTTLED: Final = 5
_IDLE_CONNECTION_SECONDS: Final = 75.0
_SENT_AT_ONCE: Final = 1024 * 1024
_SECONDS: Final = re.compile(r"[0-9]{1,9}")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""Characters that end a header, or that none may have."""
_NO_TIMEOUT: Final = aiohttp.ClientTimeout(total=None)

Observer = Callable[[str, str, str, float], None]
"""An observer of answers: method, code (or `<error>`), host, seconds."""


_Payload: TypeAlias = bytes | io.BytesIO | GuardedBody | None


class _Answer(NamedTuple):
    status: int
    body: bytes
    retry_after: str | None


def unobserved(method: str, code: str, host: str, seconds: float) -> None:
    """Ignore a request: the default observer."""


class Transport:
    """HTTP transport to one API server.

    Args:
        config: the server and the client's identity.
        qps: the average limit of requests per second; None leaves limiting to the server, whose
            priority and fairness protects it better than a client can.
        burst: the number of requests that may be sent at once before `qps` applies.
        timeout: the seconds after which an unanswered request fails; None for the limit of the
            configuration.
        dead_peer_seconds: how long a server may leave data or probes unanswered.
    """

    def __init__(
        self,
        config: ClusterConfig,
        *,
        qps: float | None = None,
        burst: int | None = None,
        timeout: float | None = None,
        dead_peer_seconds: int = DEAD_PEER_SECONDS,
        observe: Observer = unobserved,
    ) -> None:
        self._config = config
        self._base = config.server.rstrip("/")
        self._host = URL(self._base).authority
        self._server_name = config.tls_server_name
        self._throttle = Throttle(qps, burst) if qps and qps > 0 else None
        self._timeout = config.request_seconds if timeout is None else timeout
        self._observe = observe
        self._connections = Connections(self._connect, dead_peer_seconds=dead_peer_seconds)
        self._certificate_version = config.credentials.version

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        guard: Guard | None = None,
    ) -> bytes:
        """Send one request and read its whole answer.

        Retries if the server is overloaded, after the time that it names but within 30 seconds,
        and once with fresh credentials if it rejects ours.

        Args:
            guard: of a request with a body; asked before each attempt. What it raises reaches the
                caller.

        Raises:
            ApiError: the server refused.
            Unreachable: the server did not answer.
        """
        if guard is not None and guard.within is not None:
            query = {**(query or {}), "timeout": f"{guard.within:g}s"}
        url = self._url(path, query)
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        throttled, rejected, waited = 0, False, 0.0
        while True:
            try:
                return await self._send(method, url, headers, _payload(body, guard))
            except TooManyRequests as error:
                throttled += 1
                waited += error.retry_after
                if throttled == _ATTEMPTS_WHEN_THROTTLED or waited > LONGEST_WAIT_SECONDS:
                    raise
                await asyncio.sleep(error.retry_after)
            except Unauthorized:
                if rejected or not self._config.credentials.rejected():
                    raise
                rejected = True

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, accept: str, silence: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a streaming answer, as lines.

        Args:
            silence: the seconds without a byte after which the connection counts as dead.

        Raises:
            ApiError: the server refused.
            Unreachable: the server did not answer, went silent or closed the connection.
        """
        url = self._url(path, query)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout, sock_read=silence)
        try:
            headers = await self._headers({"Accept": accept})
            async with (
                self._connections.session() as session,
                session.get(
                    url,
                    headers=headers,
                    timeout=timeout,
                    server_hostname=self._server_name,
                    allow_redirects=False,
                ) as response,
            ):
                self._observe("GET", str(response.status), self._host, 0.0)
                if response.status == 401:
                    # Open the next stream with fresh credentials.
                    self._config.credentials.rejected()
                if response.status >= 300:
                    retry_after = response.headers.get("Retry-After")
                    raise self._refusal(response.status, await response.read(), retry_after)
                yield _lines(response.content)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._unreachable(error) from error

    async def trust(self, ca: bytes | None) -> None:
        """Trust another authority from now on; requests in flight keep their connections."""
        if ca != self._config.ca:
            self._config = replace(self._config, ca=ca)
            await self._connections.renew()

    async def close(self) -> None:
        """Close all connections for good."""
        await self._connections.close()

    async def _send(
        self,
        method: str,
        url: URL,
        headers: dict[str, str],
        body: _Payload,
    ) -> bytes:
        if self._throttle is not None:
            await self._throttle.wait()
        began = asyncio.get_running_loop().time()
        code = "<error>"
        try:
            own = await self._headers(headers)
            with tracing.api_request(method, url.path, self._host) as span:
                own.update(tracing.headers())
                answer = await self._exchange(method, url, own, body)
                span.set_attribute("http.response.status_code", answer.status)
            code = str(answer.status)
            if answer.status >= 300:
                raise self._refusal(answer.status, answer.body, answer.retry_after)
            return answer.body
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            if isinstance(body, GuardedBody) and body.refusal is not None:
                raise body.refusal from None
            raise self._unreachable(error) from error
        finally:
            self._observe(method, code, self._host, asyncio.get_running_loop().time() - began)

    async def _exchange(
        self, method: str, url: URL, headers: CIMultiDict[str], body: _Payload
    ) -> "_Answer":
        async with (
            # Not aiohttp's timeout: when nested, it loses a cancellation that arrives at the moment
            # it expires, as when a paused process resumes, and a task that must end would keep
            # running.
            asyncio.timeout(self._timeout),
            self._connections.session() as session,
            session.request(
                method,
                url,
                headers=headers,
                data=body,
                expect100=isinstance(body, GuardedBody) and body.is_limited,
                server_hostname=self._server_name,
                allow_redirects=False,
            ) as response,
        ):
            retry_after = response.headers.get("Retry-After")
            return _Answer(response.status, await response.read(), retry_after)

    async def _headers(self, headers: Mapping[str, str]) -> CIMultiDict[str]:
        """Add the credentials; a changed client certificate requires new connections.

        Raises:
            ConfigurationError: the credentials cannot be used now, or not as headers.
        """
        found = CIMultiDict(headers)
        credentials = await self._config.credentials.headers()
        for name, value in credentials.items():
            if _CONTROL.search(value):
                raise ConfigurationError(f"the credentials have a control character in {name}")
        found.update(credentials)
        version = self._config.credentials.version
        if version != self._certificate_version:
            self._certificate_version = version
            await self._connections.renew()
        return found

    def _connect(self, open_socket: aiohttp.SocketFactoryType) -> aiohttp.ClientSession:
        secure = self._base.startswith("https:")
        connector = aiohttp.TCPConnector(
            ssl=ssl_context(self._config) if secure else False,
            limit=0,
            keepalive_timeout=_IDLE_CONNECTION_SECONDS,
            socket_factory=open_socket,
        )
        return aiohttp.ClientSession(
            connector=connector,
            timeout=_NO_TIMEOUT,
            headers={"User-Agent": USER_AGENT},
            proxy=self._config.proxy_url or environment_proxy(self._base),
        )

    def _url(self, path: str, query: Mapping[str, str] | None) -> URL:
        url = URL(self._base + path, encoded=True)
        return url.with_query(query) if query else url

    def _refusal(self, code: int, body: bytes, retry_after: str | None) -> ApiError:
        """Return the error for an answer; the server's own text does not say whom it rejects."""
        error = _error(code, body, retry_after)
        if isinstance(error, Unauthorized):
            context = f" of context {self._config.context}" if self._config.context else ""
            error.args = (f"{error}: {self._base} does not accept the credentials{context}",)
            error.sender = self._sender
        return error

    @property
    def _sender(self) -> Sender:
        return Sender(self._base, self._config.user, self._config.context)

    def _unreachable(self, error: BaseException) -> Unreachable:
        failure = Unreachable(self._failure(error))
        failure.sender = self._sender
        return failure

    def _failure(self, error: BaseException) -> str:
        if isinstance(error, TimeoutError):
            return f"{self._base} did not answer in time"
        return f"cannot reach {self._base}: {_reason(error)}"


def _reason(error: BaseException) -> str:
    """Return why there is no connection, in the words of the operating system if it refused.

    Errors of TLS have numbers of their own, which the operating system would misread.
    """
    refused = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else None
    if refused is not None and not isinstance(refused, ssl.SSLError) and (refused.errno or 0) > 0:
        return os.strerror(refused.errno or 0).lower()
    return str(error) or type(error).__name__


def _payload(body: bytes | None, guard: Guard | None) -> _Payload:
    """Return the body as aiohttp expects it: it warns about large ones that are not streamed."""
    if body is not None and guard is not None:
        return GuardedBody(body, guard)
    return io.BytesIO(body) if body is not None and len(body) > _SENT_AT_ONCE else body


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield whole lines of a stream; objects may exceed any line limit of aiohttp."""
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n") if rest else chunk.split(b"\n")
        for line in lines:
            if line:
                yield line


def _error(code: int, body: bytes, retry_after: str | None = None) -> ApiError:
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    is_status = isinstance(status, dict) and status.get("kind") == "Status"
    if not is_status:
        # Other bodies come from elsewhere, and errors become conditions, which others may read.
        status = {"message": f"HTTP status {code} {responses.get(code, '')}".rstrip()}
    if retry_after is not None and _SECONDS.fullmatch(retry_after):
        status["details"] = {"retryAfterSeconds": int(retry_after)} | map_at(status, "details")
    error = api_error(code, status)
    error.body = b"" if is_status else body
    return error
