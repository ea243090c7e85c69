"""Sessions: random ids in cookies, kept in memory, so that they end with the process."""

import secrets
from collections import Counter, OrderedDict
from typing import Final, Generic, NamedTuple, TypeVar

from aiohttp import web

from pergola.runtime.clock import monotonic

V = TypeVar("V")
_BYTES: Final = 32
MOST: Final = 1_000
MOST_PER_OWNER: Final = 20


class _Session(NamedTuple, Generic[V]):
    used: float
    value: V
    owner: str


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
        self._sessions: OrderedDict[str, _Session[V]] = OrderedDict()

    def open(self, response: web.StreamResponse, value: V, *, owner: str) -> None:
        """Start a session, and set its cookie.

        If there are too many, the oldest one of this owner ends, or of the owner with most of them.
        """
        owners = Counter(each.owner for each in self._sessions.values())
        if owners[owner] >= MOST_PER_OWNER:
            self._end_oldest(owner)
        elif len(self._sessions) >= MOST:
            self._end_oldest(owners.most_common(1)[0][0])
        name = secrets.token_urlsafe(_BYTES)
        self._sessions[name] = _Session(monotonic(), value, owner)
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
        if found is None or monotonic() - found.used > self._seconds:
            return None
        self._sessions[name] = found._replace(used=monotonic())
        return found.value

    def close(self, request: web.Request, response: web.StreamResponse) -> V | None:
        """End the request's session; return its value."""
        found = self._sessions.pop(request.cookies.get(self._cookie, ""), None)
        response.del_cookie(self._cookie, path="/")
        return found.value if found else None

    def _end_oldest(self, owner: str) -> None:
        del self._sessions[next(name for name, it in self._sessions.items() if it.owner == owner)]
