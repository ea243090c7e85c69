"""An API server whose tokens live by the clock of a test.

A proxy in front of a real API server moves the times in the tokens that it issues, refuses them
after their end, and ends the watches of clients whose token has ended.
"""

import asyncio
import base64
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import aiohttp
import orjson
from aiohttp import web

from pergola.kube.credentials import Anonymous
from pergola.kube.kubeconfig import ClusterConfig
from pergola.runtime.clock import FakeClock
from tests.support.api_proxy import headers_for, serving, url_for

_BEARER: Final = "Bearer "
_TIMES: Final = ("exp", "iat", "nbf")
_REFUSAL: Final = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "message": "Unauthorized",
    "reason": "Unauthorized",
    "code": 401,
}


class _Token(NamedTuple):
    """A token that the API server accepts, and its end on the clock of the test."""

    real: str
    end: datetime


@dataclass
class SimulatedTime:
    """An API server by the clock of a test.

    Attributes:
        issued: how many tokens were issued.
        refused: how many requests came with a token that had ended.
        ended: how many watches were ended with their token.
    """

    config: ClusterConfig
    clock: FakeClock
    refused: int = 0
    ended: int = 0
    _tokens: dict[str, _Token] = field(default_factory=dict)
    _watches: dict[asyncio.Transport, datetime] = field(default_factory=dict)

    @property
    def issued(self) -> int:
        """The number of tokens that were issued."""
        return len(self._tokens)

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[ClusterConfig]:
        """Yield the configuration of the administrator; others replace its credentials."""
        async with serving(self.config, self._answer) as url:
            yield replace(self.config, server=url, credentials=Anonymous())

    def advance(self, duration: timedelta) -> None:
        """Let time pass; end watches whose token has ended."""
        self.clock.set(self.clock.now() + duration)
        for transport, end in list(self._watches.items()):
            if end <= self.clock.now():
                del self._watches[transport]
                self.ended += 1
                transport.close()

    async def _answer(
        self, session: aiohttp.ClientSession, request: web.Request
    ) -> web.StreamResponse:
        headers, end = await headers_for(self.config, request), None
        if authorization := request.headers.get("Authorization"):
            token = self._tokens[authorization.removeprefix(_BEARER)]
            if token.end <= self.clock.now():
                self.refused += 1
                return web.json_response(_REFUSAL, status=401)
            headers["Authorization"], end = f"{_BEARER}{token.real}", token.end
        sent, url = await request.read(), url_for(self.config, request)
        async with session.request(
            request.method, url, headers=headers, data=sent or None
        ) as answer:
            passed = {"Content-Type": answer.headers.get("Content-Type", "")}
            if request.method == "POST" and request.path.endswith("/token") and answer.ok:
                body = self._issue(orjson.loads(await answer.read()))
                return web.Response(status=answer.status, headers=passed, body=body)
            return await self._pass_on(request, answer, passed, end)

    async def _pass_on(
        self,
        request: web.Request,
        answer: aiohttp.ClientResponse,
        headers: Mapping[str, str],
        end: datetime | None,
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=headers)
        transport = request.transport
        if "watch" in request.query and transport is not None and end is not None:
            self._watches[transport] = end
        try:
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
        except ConnectionError:  # the client has left, or its watch was ended
            return response
        finally:
            if transport is not None:
                self._watches.pop(transport, None)
        return response

    def _issue(self, review: dict[str, dict[str, str]]) -> bytes:
        """Move the times of a new token, and remember which one it stands for."""
        moved = self.clock.now() - datetime.now(UTC)
        real = review["status"]["token"]
        header, payload, signature = real.split(".")
        claims = orjson.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        for name in _TIMES:
            claims[name] += round(moved.total_seconds())
        payload = base64.urlsafe_b64encode(orjson.dumps(claims)).decode().rstrip("=")
        token = f"{header}.{payload}.{signature}"
        end = datetime.fromtimestamp(claims["exp"], UTC)
        self._tokens[token] = _Token(real, end)
        review["status"] |= {"token": token, "expirationTimestamp": f"{end:%Y-%m-%dT%H:%M:%SZ}"}
        return orjson.dumps(review)
