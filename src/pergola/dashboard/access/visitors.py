"""People who have shown a token, each with a client that reads with it."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from pergola.api.objects import JsonObject
from pergola.dashboard.access.lifetimes import Lifetimes
from pergola.dashboard.access.permissions import Permissions
from pergola.dashboard.access.reviews import User, user_of
from pergola.dashboard.state.scope import Scope
from pergola.kube.client import Client
from pergola.kube.credentials import StaticToken
from pergola.kube.kubeconfig import ClusterConfig
from pergola.runtime.clock import monotonic

_MOST: Final = 1_000
_REVIEWS_AT_ONCE: Final = 8

Connect = Callable[[str], Client]
"""Returns a client that has nothing but a token."""


def connecting(config: ClusterConfig) -> Connect:
    """Return what makes clients of the same API server; nothing of our own identity is left."""
    return lambda token: Client.connect(replace(config, credentials=StaticToken(token)))


class Visitor:
    """The user of a token: it reads with that token, and sees what its user may list."""

    sees_all: Final = False

    def __init__(
        self, reviewer: Client, client: Client, token: str, user: User, lifetimes: Lifetimes
    ) -> None:
        self.client = client
        self._reviewer = reviewer
        self._token = token
        self._user = user
        self._lifetimes = lifetimes
        self._permissions = Permissions(reviewer, user, lifetimes)
        self._is_welcome = True
        self._reviewed = monotonic()
        self._reviewing = asyncio.Lock()

    @property
    def name(self) -> str:
        """The name of the user."""
        return self._user.name

    async def is_welcome(self) -> bool:
        """Return whether the API server still accepts the token; never again once it did not.

        Raises:
            KubeError: The API server cannot be asked.
        """
        async with self._reviewing:
            if self._is_welcome and monotonic() - self._reviewed >= self._lifetimes.token:
                await self._review()
        return self._is_welcome

    async def may_see(self, scopes: Sequence[Scope]) -> Sequence[bool]:
        """Return for each entry of the feed whether the user may list its kind there."""
        allowed = await self._permissions.allowed({scope.place for scope in scopes})
        return [scope.place in allowed for scope in scopes]

    def problems(self) -> list[JsonObject]:
        """Return why less is shown than the user may see."""
        return self._permissions.problems()

    async def _review(self) -> None:
        user = await user_of(self._reviewer, self._token)
        self._reviewed = monotonic()
        self._is_welcome = user is not None
        if user is not None and user != self._user:
            self._user = user
            self._permissions = Permissions(self._reviewer, user, self._lifetimes)


class Visitors:
    """The visitors of one server, by the digests of their tokens.

    Args:
        reviewer: May create TokenReviews and SubjectAccessReviews.
        connect: Makes the clients of visitors.
    """

    def __init__(
        self, reviewer: Client, connect: Connect, lifetimes: Lifetimes | None = None
    ) -> None:
        self._reviewer = reviewer
        self._connect = connect
        self._lifetimes = lifetimes or Lifetimes()
        self._visitors: OrderedDict[bytes, Visitor] = OrderedDict()
        self._reviewing = asyncio.Semaphore(_REVIEWS_AT_ONCE)

    async def of(self, token: str) -> Visitor | None:
        """Return whose token it is; None if the API server does not accept it, or not any more.

        Raises:
            KubeError: The API server cannot be asked.
        """
        digest = _digest(token)
        known = self._visitors.get(digest)
        if known is None:
            return await self._admit(digest, token)
        if await known.is_welcome():
            with suppress(KeyError):  # another request may have removed it meanwhile
                self._visitors.move_to_end(digest)
            return known
        await self.forget(token)
        return None

    async def forget(self, token: str) -> None:
        """Close the connections of a visitor, and forget the token."""
        visitor = self._visitors.pop(_digest(token), None)
        if visitor is not None:
            await visitor.client.close()

    async def close(self) -> None:
        """Forget all visitors."""
        visitors = list(self._visitors.values())
        self._visitors.clear()
        for visitor in visitors:
            await visitor.client.close()

    async def _admit(self, digest: bytes, token: str) -> Visitor | None:
        async with self._reviewing:
            user = await user_of(self._reviewer, token)
        if user is None:
            return None
        if digest not in self._visitors:
            client = self._connect(token)
            visitor = Visitor(self._reviewer, client, token, user, self._lifetimes)
            self._visitors[digest] = visitor
        admitted = self._visitors[digest]
        if len(self._visitors) > _MOST:
            _, oldest = self._visitors.popitem(last=False)
            await oldest.client.close()
        return admitted


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
