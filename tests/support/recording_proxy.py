"""A proxy in front of an API server that records the writes of each client."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import aiohttp
import orjson
from aiohttp import web

from pergola.api.objects import JsonObject
from pergola.kube.kubeconfig import ClusterConfig
from tests.support.api_proxy import headers_for, serving, url_for

_HOP_BY_HOP: Final = ("Transfer-Encoding", "Content-Length", "Content-Encoding", "Connection")


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

        async def handle(
            session: aiohttp.ClientSession, request: web.Request
        ) -> web.StreamResponse:
            return await self._forward(holder, session, request)

        async with serving(self.config, handle, auto_decompress=False) as url:
            yield url

    async def _forward(
        self, holder: str, session: aiohttp.ClientSession, request: web.Request
    ) -> web.StreamResponse:
        headers = await headers_for(self.config, request)
        url, sent = url_for(self.config, request), await request.read()
        async with session.request(
            request.method, url, headers=headers, data=sent or None
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
