"""People who have presented a token, each with a client that reads with that token."""

import asyncio
import hashlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from pergola.api.objects import JsonObject
from pergola.dashboard.access.lifetimes import Lifetimes
from pergola.dashboard.access.permissions import Permissions
from pergola.dashboard.access.reviews import Unreviewed, User, user_of
from pergola.dashboard.state.scope import Scope
from pergola.kube.client import Client
from pergola.kube.credentials import StaticToken
from pergola.kube.kubeconfig import ClusterConfig
from pergola.runtime.clock import monotonic

MOST: Final = 1_000
MOST_TOKENS_PER_USER: Final = 20
_REVIEWS_AT_ONCE: Final = 8
_WAITING: Final = 100
"""A guesser of tokens cannot keep others waiting for longer than for this many reviews."""

Connect = Callable[[str], Client]
"""Returns a client whose only credential is a token."""


def connecting(config: ClusterConfig) -> Connect:
    """Return a factory of clients for the same API server, without our own identity."""
    return lambda token: Client.connect(replace(config, credentials=StaticToken(token)))


class Visitor:
    """The user of a token: reads with that token, and sees what the user may list."""

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
        """Return whether the API server still accepts the token; a rejection is final.

        Raises:
            KubeError: The API server cannot be reached.
        """
        async with self._reviewing:
            if self._is_welcome and monotonic() - self._reviewed >= self._lifetimes.token:
                await self._review()
        return self._is_welcome

    async def may_see(self, scopes: Sequence[Scope]) -> Sequence[bool]:
        """Return, for each entry of the feed, whether the user may list its kind there."""
        allowed = await self._permissions.allowed({scope.place for scope in scopes})
        return [scope.place in allowed for scope in scopes]

    def problems(self) -> list[JsonObject]:
        """Return why some objects that the user may see are not shown."""
        return self._permissions.problems()

    async def leave(self) -> None:
        """End the session, also for pages that are open."""
        self._is_welcome = False
        await self.client.close()

    async def _review(self) -> None:
        user = await user_of(self._reviewer, self._token)
        self._reviewed = monotonic()
        self._is_welcome = self._is_welcome and user is not None
        if user is not None and user != self._user:
            self._user = user
            self._permissions = Permissions(self._reviewer, user, self._lifetimes)


class Visitors:
    """The visitors of one server, by the digests of their tokens.

    Args:
        reviewer: Must be allowed to create TokenReviews and SubjectAccessReviews.
        connect: Creates the clients of visitors.
    """

    def __init__(
        self, reviewer: Client, connect: Connect, lifetimes: Lifetimes | None = None
    ) -> None:
        self._reviewer = reviewer
        self._connect = connect
        self._lifetimes = lifetimes or Lifetimes()
        self._visitors: OrderedDict[bytes, Visitor] = OrderedDict()
        self._reviewing = asyncio.Semaphore(_REVIEWS_AT_ONCE)
        self._waiting = 0

    async def of(self, token: str) -> Visitor | None:
        """Return the user of a token; None if the API server does not, or no longer, accept it.

        Raises:
            KubeError: The API server cannot be reached.
        """
        digest = _digest(token)
        known = self._visitors.get(digest)
        if known is None:
            return await self._admit(digest, token)
        if await known.is_welcome():
            with suppress(KeyError):  # another request may have removed it in the meantime
                self._visitors.move_to_end(digest)
            return known
        await self.forget(token)
        return None

    async def forget(self, token: str) -> None:
        """End the session of a visitor, and drop the token."""
        visitor = self._visitors.pop(_digest(token), None)
        if visitor is not None:
            await visitor.leave()

    async def close(self) -> None:
        """Drop all visitors."""
        visitors = list(self._visitors.values())
        self._visitors.clear()
        for visitor in visitors:
            await visitor.client.close()

    async def _admit(self, digest: bytes, token: str) -> Visitor | None:
        user = await self._review(token)
        if user is None:
            return None
        if digest not in self._visitors:
            client = self._connect(token)
            visitor = Visitor(self._reviewer, client, token, user, self._lifetimes)
            self._visitors[digest] = visitor
        admitted = self._visitors[digest]
        names = Counter(each.name for each in self._visitors.values())
        if names[user.name] > MOST_TOKENS_PER_USER:
            await self._end_oldest(user.name)
        elif len(self._visitors) > MOST:
            await self._end_oldest(names.most_common(1)[0][0])
        return admitted

    async def _review(self, token: str) -> User | None:
        if self._waiting >= _WAITING:
            raise Unreviewed("too many tokens are checked at the same time: try again")
        self._waiting += 1
        try:
            async with self._reviewing:
                return await user_of(self._reviewer, token)
        finally:
            self._waiting -= 1

    async def _end_oldest(self, name: str) -> None:
        oldest = next(digest for digest, each in self._visitors.items() if each.name == name)
        await self._visitors.pop(oldest).leave()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
