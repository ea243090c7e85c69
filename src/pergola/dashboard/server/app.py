"""The routes of the dashboard, and its server as a context."""

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from socket import socket
from typing import Final, cast

from aiohttp import hdrs, web

from pergola import __version__
from pergola.api.objects import GroupVersionKind, Key
from pergola.dashboard.access.viewer import Door, Viewer, still_sees
from pergola.dashboard.server.answers import Answers, Unanswered
from pergola.dashboard.server.connections import Guard
from pergola.dashboard.server.files import Files
from pergola.dashboard.server.guards import VIEWER, add_headers, guards
from pergola.dashboard.server.objects import details
from pergola.dashboard.server.requests import RequestHandler, no_logger, requests_logger
from pergola.dashboard.server.shared import Shared
from pergola.dashboard.server.sse import message, send_events
from pergola.dashboard.server.stream import BEAT_SECONDS, Stream
from pergola.dashboard.state.board import Board
from pergola.dashboard.state.feed import Position
from pergola.dashboard.state.scope import Scope
from pergola.kube.errors import KubeError
from pergola.runtime.clock import Clock, SystemClock

MOST_STREAMS: Final = 20
"""The open pages of one user."""
MOST_STREAMS_TOGETHER: Final = 300
"""The open pages of all users, which leave connections for others: to sign in, to read details."""
_SHUTDOWN_SECONDS: Final = 1.0
_LONGEST_BODY: Final = 32 * 1024
_DOCUMENTATION: Final = "https://pergola.dev"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The dependencies of the routes.

    Attributes:
        cluster: The name of the cluster, as the page shows it.
        beat_seconds: The interval of heartbeats to an open page.
    """

    board: Board
    door: Door
    answers: Answers
    cluster: str
    clock: Clock = field(default_factory=SystemClock)
    beat_seconds: float = BEAT_SECONDS
    _streams: Counter[str] = field(default_factory=Counter, init=False)
    _shared: Shared = field(default_factory=Shared, init=False)

    def app(self, guard: Guard) -> web.Application:
        """Return the application with all routes."""
        files = Files()

        async def page(request: web.Request) -> web.Response:
            viewer = await self.door.viewer(request)
            return files.answer(request, self.door.page if viewer is None else "index.html")

        app = web.Application(
            middlewares=[guard.middleware, *guards(self.door)], client_max_size=_LONGEST_BODY
        )
        app.on_response_prepare.append(add_headers)
        app.add_routes(self.door.routes())
        app.router.add_get("/", page)
        app.router.add_get("/assets/{path:.+}", files.asset)
        app.router.add_get("/api/cluster", self._cluster)
        app.router.add_get("/api/stream", self._stream)
        app.router.add_get("/api/object", self._object)
        app.router.add_get("/api/why", self._why)
        app.router.add_get("/api/flow", self._flow)
        app.router.add_get("/api/network.svg", self._picture)
        return app

    async def _cluster(self, request: web.Request) -> web.Response:
        name = request[VIEWER].name
        has_session = bool(name) and hdrs.AUTHORIZATION not in request.headers
        about = {"cluster": self.cluster, "version": __version__, "documentation": _DOCUMENTATION}
        return web.json_response({**about, "user": name, "session": has_session})

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        last = request.headers.get("Last-Event-ID", "")
        position = Position.parse(last) if last else None
        viewer = request[VIEWER]
        stream = Stream(self.board, viewer, self.clock, self._shared, position, self.beat_seconds)
        with self._counted(viewer):
            return await send_events(request, stream.messages())

    async def _object(self, request: web.Request) -> web.Response:
        return web.json_response(await details(request[VIEWER].client, *_subject(request)))

    async def _why(self, request: web.Request) -> web.Response:
        try:
            found = await self.answers.why(request[VIEWER].client, *_subject(request))
        except Unanswered as problem:
            found = {"answer": str(problem)}
        return web.json_response(found)

    async def _flow(self, request: web.Request) -> web.StreamResponse:
        subject = _subject(request)
        viewer = request[VIEWER]
        with self._counted(viewer):
            return await send_events(request, self._flow_messages(viewer, *subject))

    @contextmanager
    def _counted(self, viewer: Viewer) -> Generator[None]:
        """Count an open stream of a user, each of which may hold a copy of the whole feed."""
        if self._streams.total() >= MOST_STREAMS_TOGETHER:
            raise web.HTTPServiceUnavailable(
                text=f"{MOST_STREAMS_TOGETHER} pages are open: try again later\n"
            )
        if self._streams[viewer.name] >= MOST_STREAMS:
            raise web.HTTPTooManyRequests(
                text=f"you have {MOST_STREAMS} open pages: close one of them\n"
            )
        self._streams[viewer.name] += 1
        try:
            yield
        finally:
            self._streams[viewer.name] -= 1
            if not self._streams[viewer.name]:
                del self._streams[viewer.name]

    async def _flow_messages(
        self, viewer: Viewer, gvk: GroupVersionKind, key: Key
    ) -> AsyncGenerator[bytes]:
        try:
            if not all(await viewer.may_see([Scope(gvk, key)])):
                raise Unanswered(f"you may not list the kind {gvk.kind} there")
            async with self.answers.flow(viewer.client, gvk, key) as pictures:
                async for picture in pictures:
                    if not await still_sees(viewer, Scope(gvk, key)):
                        return
                    yield message("flow", picture)
            yield message("end", {})
        except (Unanswered, KubeError) as problem:
            yield message("problem", {"text": str(problem)})

    async def _picture(self, request: web.Request) -> web.Response:
        _, key = _subject(request)
        try:
            drawn = await self.answers.picture(request[VIEWER].client, key)
        except Unanswered as problem:
            return web.Response(text=f"{problem}\n", status=404)
        return web.Response(text=drawn, content_type="image/svg+xml")


@asynccontextmanager
async def serve_dashboard(
    server: Server, listener: socket, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[None]:
    """Serve the page on a socket until the end of the block."""
    guard = Guard()
    runner = web.AppRunner(server.app(guard), shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    loop = asyncio.get_running_loop()

    def protocol() -> RequestHandler:
        requests = cast("web.Server", runner.server)
        return RequestHandler(requests, loop=loop, access_log=no_logger(), logger=requests_logger())

    try:
        async with guard.accepting(listener, protocol, tls):
            yield
    finally:
        await runner.cleanup()


def _subject(request: web.Request) -> tuple[GroupVersionKind, Key]:
    """Return the object named in a request."""
    query = request.query
    gvk = GroupVersionKind.parse(query.get("apiVersion", ""), query.get("kind", ""))
    key = Key(query.get("namespace", ""), query.get("name", ""))
    if not (gvk.version and gvk.kind and key.name):
        raise web.HTTPBadRequest(text="name the object: apiVersion, kind, namespace and name\n")
    return gvk, key
