"""A person who looks at the page, and the door through which they come in."""

from collections.abc import Sequence
from typing import Protocol

from aiohttp import web

from pergola.api.objects import JsonObject
from pergola.dashboard.state.scope import Scope
from pergola.kube.client import Client
from pergola.kube.errors import KubeError


class Viewer(Protocol):
    """A person with a session.

    Attributes:
        client: Reads with their permissions, and is used for all that they request.
    """

    client: Client

    @property
    def sees_all(self) -> bool:
        """Whether the caches read with the same permissions, so that nothing is hidden."""
        ...

    @property
    def name(self) -> str:
        """The user's name for the API server; empty if nobody had to sign in."""
        ...

    async def is_welcome(self) -> bool:
        """Return whether the session still counts.

        Raises:
            KubeError: The API server cannot be asked.
        """
        ...

    async def may_see(self, scopes: Sequence[Scope]) -> Sequence[bool]:
        """Return for each entry of the feed whether `kubectl get` would show its object."""
        ...

    def problems(self) -> Sequence[JsonObject]:
        """Return why less is shown than they may see."""
        ...


class Door(Protocol):
    """The way in: it recognises viewers, and adds the requests by which they sign in."""

    @property
    def page(self) -> str:
        """The file that says how to come in."""
        ...

    def serves(self, host: str) -> bool:
        """Return whether a value of the Host header is served; others are of rebound names."""
        ...

    async def viewer(self, request: web.Request) -> Viewer | None:
        """Return who sends a request; None without a valid session.

        Raises:
            KubeError: The API server cannot be asked.
        """
        ...

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the requests for which no session is needed."""
        ...


async def still_sees(viewer: Viewer, *scopes: Scope) -> bool:
    """Return whether a session still counts, and shows all of these; not if nobody can tell."""
    try:
        return await viewer.is_welcome() and all(await viewer.may_see(scopes))
    except KubeError:
        return False
