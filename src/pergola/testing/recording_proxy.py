"""A proxy in front of an API server that records the writes of each client."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import aiohttp
import orjson
from aiohttp import web

from pergola.api.objects import JsonObject
from pergola.kube.kubeconfig import ClusterConfig, ssl_context

_HOST: Final = "127.0.0.1"
_HOP_BY_HOP: Final = ("Transfer-Encoding", "Content-Length", "Content-Encoding", "Connection")
_LARGEST: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Write:
    """A request that changed something, and its answer.

    Attributes:
        holder: the name of the client.
        answer: the object afterwards; a Status if it is gone.
    """

    holder: str
    method: str
    path: str
    answer: JsonObject

    @property
    def name(self) -> str:
        """The name of the object."""
        metadata: JsonObject = self.answer.get("metadata") or {}
        gone: JsonObject = self.answer.get("details") or {}
        return str(metadata.get("name") or gone.get("name") or "")


@dataclass
class RecordingProxy:
    """Connections to one API server, each of which belongs to one client.

    Attributes:
        writes: the successful writes of all clients, in the order of their answers.
    """

    config: ClusterConfig
    writes: list[Write] = field(default_factory=list)

    @asynccontextmanager
    async def connection(self, holder: str) -> AsyncGenerator[str]:
        """Yield the URL of the API server for one client."""
        connector = aiohttp.TCPConnector(ssl=ssl_context(self.config), limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:

            async def handle(request: web.Request) -> web.StreamResponse:
                return await self._forward(holder, session, request)

            app = web.Application(client_max_size=_LARGEST)
            app.router.add_route("*", "/{path:.*}", handle)
            runner = web.AppRunner(app, shutdown_timeout=0.0, handler_cancellation=True)
            await runner.setup()
            try:
                site = web.TCPSite(runner, _HOST, 0)
                await site.start()
                yield f"http://{_HOST}:{runner.addresses[0][1]}"
            finally:
                await runner.cleanup()

    async def _forward(
        self, holder: str, session: aiohttp.ClientSession, request: web.Request
    ) -> web.StreamResponse:
        headers = {k: v for k, v in request.headers.items() if k in ("Accept", "Content-Type")}
        headers |= await self.config.credentials.headers()
        url = self.config.server.rstrip("/") + request.raw_path
        timeout = aiohttp.ClientTimeout(total=None)
        async with session.request(
            request.method, url, headers=headers, data=await request.read() or None, timeout=timeout
        ) as answer:
            passed = {k: v for k, v in answer.headers.items() if k not in _HOP_BY_HOP}
            if request.method != "GET":
                body = await answer.read()
                if answer.status < 300:
                    write = Write(holder, request.method, request.path, orjson.loads(body))
                    self.writes.append(write)
                return web.Response(status=answer.status, headers=passed, body=body)
            response = web.StreamResponse(status=answer.status, headers=passed)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response
