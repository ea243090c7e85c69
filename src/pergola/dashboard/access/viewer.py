"""A person who looks at the page, and the door through which they come in."""

from collections.abc import Sequence
from typing import Protocol

from aiohttp import web

from pergola.dashboard.state.scope import Scope
from pergola.kube.client import Client


class Viewer(Protocol):
    """A person with a session.

    Attributes:
        client: Reads with their permissions, and is used for all that they request.
        sees_all: Whether the caches read with the same permissions, so that nothing is hidden.
    """

    client: Client
    sees_all: bool

    async def may_see(self, scopes: Sequence[Scope]) -> Sequence[bool]:
        """Return for each entry of the feed whether `kubectl get` would show its object."""
        ...


class Door(Protocol):
    """The way in: it recognises viewers, and adds the requests by which they sign in."""

    @property
    def hosts(self) -> frozenset[str]:
        """The values of the Host header that are served; others are of rebound names."""
        ...

    @property
    def is_secure(self) -> bool:
        """Whether the page is served over TLS."""
        ...

    def viewer(self, request: web.Request) -> Viewer | None:
        """Return who sends a request; None without a valid session."""
        ...

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the requests for which no session is needed."""
        ...
