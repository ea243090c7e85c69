"""In a cluster: a bearer token opens a session, or an authenticating proxy sends one."""

import asyncio
import re
from collections.abc import Collection, Sequence
from typing import Final

import orjson
from aiohttp import hdrs, web

from pergola.dashboard.access.sessions import Sessions
from pergola.dashboard.access.visitors import Visitor, Visitors

COOKIE: Final = "__Host-pergola-dashboard"
"""The prefix makes browsers require TLS, and guarantees that no other host set the cookie."""
_SESSION_SECONDS: Final = 12 * 3600.0
_BODY_SECONDS: Final = 10.0
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]{1,16384}=*")
_SCHEME: Final = "bearer"
_REFUSED: Final = (
    "the API server does not accept this token: it is not complete, has expired, was revoked, or "
    "is for another audience\n"
)


class ClusterDoor:
    """Access to a dashboard that several people use, over TLS.

    Args:
        visitors: Identifies them by their tokens.
        hosts: The names under which it is served, without ports.
    """

    page: Final = "sign-in-token.html"

    def __init__(self, visitors: Visitors, hosts: Collection[str]) -> None:
        self._visitors = visitors
        self._hosts = frozenset(host.lower() for host in hosts)
        self._sessions: Sessions[str] = Sessions(COOKIE, seconds=_SESSION_SECONDS, is_secure=True)

    def serves(self, host: str) -> bool:
        """Return whether a Host header has one of our names; the port may be forwarded."""
        return re.sub(r":\d+$", "", host.lower()) in self._hosts

    async def viewer(self, request: web.Request) -> Visitor | None:
        """Return the user of the Authorization header or, without one, of the session."""
        if hdrs.AUTHORIZATION in request.headers:
            token = _bearer(request.headers.getall(hdrs.AUTHORIZATION))
        else:
            token = self._sessions.get(request) or ""
        return await self._visitors.of(token) if token else None

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the routes for signing in and out."""
        return [web.post("/sign-in", self._sign_in), web.post("/sign-out", self._sign_out)]

    async def _sign_in(self, request: web.Request) -> web.Response:
        token = await _posted(request)
        visitor = await self._visitors.of(token) if token else None
        if visitor is None:
            raise web.HTTPUnauthorized(text=_REFUSED)
        response = web.Response(status=204)
        self._sessions.open(response, token, owner=visitor.name)
        return response

    async def _sign_out(self, request: web.Request) -> web.Response:
        response = web.Response(status=204)
        token = self._sessions.close(request, response)
        if token:
            await self._visitors.forget(token)
        return response


def _bearer(values: Sequence[str]) -> str:
    """Return the token of the only Authorization header; empty if it has none."""
    scheme, _, token = values[0].partition(" ")
    is_bearer = len(values) == 1 and scheme.lower() == _SCHEME
    return _valid(token.strip()) if is_bearer else ""


async def _posted(request: web.Request) -> str:
    """Return the token in `{"token": …}`; forms of other sites cannot send this content type."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="send the token as JSON\n")
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            body = orjson.loads(await request.read())
    except TimeoutError:
        raise web.HTTPRequestTimeout(text="the token did not arrive in time\n") from None
    except orjson.JSONDecodeError:
        body = None
    token = body.get("token") if isinstance(body, dict) else None
    return _valid(token.strip()) if isinstance(token, str) else ""


def _valid(token: str) -> str:
    """Return a token that is valid in a header; empty for other text."""
    return token if _TOKEN.fullmatch(token) else ""
