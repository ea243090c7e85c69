"""Sessions: random ids in cookies, kept in memory, so that they end with the process."""

import secrets
from collections import OrderedDict
from typing import Final, Generic, TypeVar

from aiohttp import web

from pergola.runtime.clock import monotonic

V = TypeVar("V")
_BYTES: Final = 32
_MOST: Final = 1_000


class Sessions(Generic[V]):
    """The sessions of one server.

    Args:
        cookie: The name of the cookie. Cookies are not separated by port, so it should contain the
            port.
        seconds: The time that a session lasts without a request.
        is_secure: Whether the cookie is sent over TLS only.
    """

    def __init__(self, cookie: str, *, seconds: float, is_secure: bool) -> None:
        self._cookie = cookie
        self._seconds = seconds
        self._is_secure = is_secure
        self._sessions: OrderedDict[str, tuple[float, V]] = OrderedDict()

    def open(self, response: web.StreamResponse, value: V) -> None:
        """Start a session, and set its cookie."""
        name = secrets.token_urlsafe(_BYTES)
        self._sessions[name] = monotonic(), value
        if len(self._sessions) > _MOST:
            self._sessions.popitem(last=False)
        response.set_cookie(
            self._cookie,
            name,
            httponly=True,
            samesite="Strict",
            secure=self._is_secure,
            path="/",
        )

    def get(self, request: web.Request) -> V | None:
        """Return the value of the request's session; None without one."""
        name = request.cookies.get(self._cookie, "")
        found = self._sessions.pop(name, None)
        if found is None or monotonic() - found[0] > self._seconds:
            return None
        self._sessions[name] = monotonic(), found[1]
        return found[1]

    def close(self, request: web.Request, response: web.StreamResponse) -> V | None:
        """End the request's session; return its value."""
        found = self._sessions.pop(request.cookies.get(self._cookie, ""), None)
        response.del_cookie(self._cookie, path="/")
        return found[1] if found else None
