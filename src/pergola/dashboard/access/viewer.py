"""The viewer of the page, and the door through which viewers enter."""

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
        client: Reads with their permissions, and serves all of their requests.
    """

    client: Client

    @property
    def sees_all(self) -> bool:
        """Whether the viewer has the permissions of the caches, so that nothing is hidden."""
        ...

    @property
    def name(self) -> str:
        """The user's name in the API server; empty if no sign-in is required."""
        ...

    async def is_welcome(self) -> bool:
        """Return whether the session is still valid.

        Raises:
            KubeError: The API server cannot be reached.
        """
        ...

    async def may_see(self, scopes: Sequence[Scope]) -> Sequence[bool]:
        """Return, for each entry of the feed, whether `kubectl get` would show its object."""
        ...

    def problems(self) -> Sequence[JsonObject]:
        """Return why some objects that the viewer may see are not shown."""
        ...


class Door(Protocol):
    """The entrance: it recognises viewers, and provides the routes for signing in."""

    @property
    def page(self) -> str:
        """The file that explains how to sign in."""
        ...

    def serves(self, host: str) -> bool:
        """Return whether a Host header is acceptable; others come from DNS rebinding."""
        ...

    async def viewer(self, request: web.Request) -> Viewer | None:
        """Return the viewer who sent the request, or None if the session is not valid.

        Raises:
            KubeError: The API server cannot be reached.
        """
        ...

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the routes that need no session."""
        ...


async def still_sees(viewer: Viewer, *scopes: Scope) -> bool:
    """Return whether a session still sees all of these objects; False if that is unknown."""
    try:
        return await viewer.is_welcome() and all(await viewer.may_see(scopes))
    except KubeError:
        return False
