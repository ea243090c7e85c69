"""A proxy in front of an API server that gives wrong answers to every kind of request."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import aiohttp
from aiohttp import web

from pergola.kube.kubeconfig import ClusterConfig
from tests.support.api_proxy import headers_for, serving, url_for
from tests.support.wrong_answers import Wrong

_LIMITED: Final = ("GET", "PUT", "PUT status", "PATCH", "DELETE", "POST token")
_LIES_PER_OBJECT: Final = 2


@dataclass
class LyingProxy:
    """A proxy that passes everything on, except for a number of lies to each kind of request.

    A lie about a write comes after the write, or instead of it, in turns.

    Attributes:
        lies: the wrong answers; each kind of request gets all, in this order.
        every: of so many requests of a kind, one gets a lie; 1 if absent.
        is_honest: whether it passes everything on.
        seen: the kinds of requests, and how many lies each got.
    """

    config: ClusterConfig
    lies: Sequence[Wrong]
    every: dict[str, int] = field(default_factory=dict)
    is_honest: bool = True
    seen: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def __post_init__(self) -> None:
        self._left: dict[str, Iterator[Wrong]] = {}
        self._count: dict[str, int] = defaultdict(int)
        self._about: dict[tuple[str, str], int] = defaultdict(int)
        self._watches: set[asyncio.Transport] = set()

    def end_watches(self) -> None:
        """End all open watches, so that the client asks for them again."""
        for transport in self._watches:
            transport.close()

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[str]:
        """Yield the URL of the proxy."""
        async with serving(self.config, self._answer) as url:
            yield url

    def _lie(self, kind: str, path: str) -> Wrong | None:
        self.seen.setdefault(kind, 0)
        if self.is_honest:
            return None
        if kind in _LIMITED:
            # An object that fails more often is retried ever more slowly, by design.
            self._about[kind, path] += 1
            if self._about[kind, path] > _LIES_PER_OBJECT:
                return None
        self._count[kind] += 1
        if self._count[kind] % self.every.get(kind, 1):
            return None
        if kind not in self._left:
            of_many = kind in ("LIST", "WATCH")
            self._left[kind] = iter([e for e in self.lies if not (of_many and e.may_be_right)])
        lie = next(self._left[kind], None)
        self.seen[kind] += lie is not None
        return lie

    async def _answer(
        self, session: aiohttp.ClientSession, request: web.Request
    ) -> web.StreamResponse:
        kind = kind_of(request)
        lie = self._lie(kind, request.path)
        if kind == "WATCH":
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            transport = request.transport
            assert transport is not None
            self._watches.add(transport)
            try:
                return await self._watch(session, request, response, lie)
            except ConnectionError:  # the client has read enough
                return response
            finally:
                self._watches.discard(transport)
        method, body = request.method, await request.read()
        if lie is not None and method != "GET" and self.seen[kind] % 2:
            right, status, content_type = body, 201, "application/json"
            if method != "POST":
                right, status, content_type = await self._asked(session, request, "GET", b"")
            wrong = lie.body(right) if status < 300 else None
            if wrong is not None:
                return await _lied(request, lie, wrong)
        right, status, content_type = await self._asked(session, request, method, body)
        wrong = lie.body(right) if lie is not None and status < 300 else None
        if lie is None or wrong is None:
            return web.Response(status=status, body=right, content_type=content_type)
        return await _lied(request, lie, wrong)

    async def _asked(
        self, session: aiohttp.ClientSession, request: web.Request, method: str, body: bytes
    ) -> tuple[bytes, int, str]:
        async with self._forwarded(session, request, method, body) as answer:
            return await answer.read(), answer.status, answer.content_type

    async def _watch(
        self,
        session: aiohttp.ClientSession,
        request: web.Request,
        response: web.StreamResponse,
        lie: Wrong | None,
    ) -> web.StreamResponse:
        async with self._forwarded(session, request, "GET", b"") as answer:
            if lie is not None and (lie.status != 200 or lie.headers):
                return await _lied(request, lie, lie.body(b"{}") or b"")
            response.set_status(answer.status)
            await response.prepare(request)
            rest = b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    wrong = lie.body(line) if lie is not None else None
                    await response.write((line if wrong is None else wrong) + b"\n")
                    if wrong is not None:
                        lie = None
                        if request.transport is not None:
                            request.transport.close()
            await response.write(rest)
            return response

    @asynccontextmanager
    async def _forwarded(
        self, session: aiohttp.ClientSession, request: web.Request, method: str, body: bytes
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        headers = await headers_for(self.config, request)
        if method != request.method:
            headers["Accept"] = "application/json"
            body = b""
        url = url_for(self.config, request)
        async with session.request(method, url, headers=headers, data=body or None) as answer:
            yield answer


def kind_of(request: web.Request) -> str:
    """Return the kind of a request: its verb, and the resource if it is a special one."""
    segments = request.path.strip("/").split("/")
    rest = segments[2:] if segments[0] == "api" else segments[3:] if segments[0] == "apis" else []
    if not rest:
        return "DISCOVERY" if segments[0] in ("api", "apis") else "OTHER"
    if "watch" in request.query:
        return "WATCH"
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    resource, is_item = rest[0], len(rest) > 1
    verb = request.method if request.method != "GET" or is_item else "LIST"
    is_special = resource in ("leases", "events") and request.method != "GET"
    special = resource if is_special else "/".join(rest[2:])
    return f"{verb} {special}".strip()


async def _lied(request: web.Request, lie: Wrong, body: bytes) -> web.StreamResponse:
    headers = {"Content-Type": "application/json", **lie.headers}
    if not lie.breaks:
        return web.Response(status=lie.status, headers=headers, body=body)
    response = web.StreamResponse(status=lie.status, headers=headers)
    await response.prepare(request)
    await response.write(body)
    if request.transport is not None:
        request.transport.close()
    return response
