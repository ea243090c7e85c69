"""Local use: a one-time link opens a session with the permissions of the caller's kubeconfig."""

import hmac
import secrets
from collections.abc import Callable, Sequence
from typing import Final

from aiohttp import web

from pergola.api.objects import JsonObject
from pergola.dashboard.access.peers import is_own
from pergola.dashboard.access.sessions import Sessions
from pergola.dashboard.state.scope import Scope
from pergola.kube.client import Client

LOOPBACK: Final = "127.0.0.1"
_SESSION_SECONDS: Final = 12 * 3600.0
_BYTES: Final = 32
# A redirect would still count as cross-site if the link was on another site, and cookies would not
# be sent.
_SIGNED_IN: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Pergola</title>
<meta http-equiv="refresh" content="0; url=/"></head>
<body><p><a href="/">Open the dashboard</a></p></body></html>
"""
_FOREIGN: Final = "only the user who started `pergola dashboard` may open it\n"
_USED: Final = "this link was used before: use the one that `pergola dashboard` printed last\n"


class LocalDoor:
    """Access to a dashboard for its caller only.

    Each link works once. When it is used, a new one is created for another browser.

    Args:
        client: A client with the caller's kubeconfig.
        port: On loopback.
        on_link: Called with each new link.
    """

    page: Final = "sign-in-link.html"

    def __init__(self, client: Client, port: int, on_link: Callable[[str], object]) -> None:
        self._origin = f"http://{LOOPBACK}:{port}"
        self._hosts = frozenset({f"{LOOPBACK}:{port}", f"localhost:{port}"})
        self._viewer = _Caller(client)
        self._on_link = on_link
        self._sessions: Sessions[_Caller] = Sessions(
            f"pergola-dashboard-{port}", seconds=_SESSION_SECONDS, is_secure=False
        )
        self._token = ""
        self._renew()

    def serves(self, host: str) -> bool:
        """Return whether a Host header names this loopback port."""
        return host.lower() in self._hosts

    async def viewer(self, request: web.Request) -> "_Caller | None":
        """Return the caller, if the request has a session cookie and comes from their user."""
        return self._sessions.get(request) if _is_own(request) else None

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the route that exchanges a link for a session."""
        return [web.get("/sign-in", self._sign_in, allow_head=False)]

    async def _sign_in(self, request: web.Request) -> web.Response:
        token = request.query.get("token", "")
        if not _is_own(request):
            raise web.HTTPForbidden(text=_FOREIGN)
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            raise web.HTTPUnauthorized(text=_USED)
        response = web.Response(text=_SIGNED_IN, content_type="text/html")
        self._sessions.open(response, self._viewer, owner=self._viewer.name)
        self._renew()
        return response

    def _renew(self) -> None:
        self._token = secrets.token_urlsafe(_BYTES)
        self._on_link(f"{self._origin}/sign-in?token={self._token}")


def _is_own(request: web.Request) -> bool:
    """Return whether a request comes from a process of our user on this machine."""
    if request.transport is None:
        return False
    peer = request.transport.get_extra_info("peername")
    here = request.transport.get_extra_info("sockname")
    return bool(peer and here) and is_own(peer[:2], here[:2])


class _Caller:
    """The person who started the dashboard, with whose permissions the caches read."""

    sees_all: Final = True
    name: Final = ""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def is_welcome(self) -> bool:
        return True

    async def may_see(self, scopes: Sequence[Scope]) -> Sequence[bool]:
        return [True] * len(scopes)

    def problems(self) -> Sequence[JsonObject]:
        return ()
