"""Connections to AWS's services; opened with the first request to each."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from pergola.api.objects import JsonObject
from pergola.cloud.aws.credentials import Credentials

if TYPE_CHECKING:
    from pergola.cloud.aws.library import Session

Identity = tuple[Credentials | None, str]
"""Credentials and a region."""


class Services:
    """The services in one region, with one identity; several clients may share them.

    Args:
        credentials: for the identity; AWS's default credential chain if None.
        endpoint_url: for all services, instead of AWS's own.
    """

    def __init__(self, region: str, credentials: Credentials | None, endpoint_url: str) -> None:
        self.region = region
        self._credentials = credentials
        self._endpoint_url = endpoint_url
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._session: Session | None = None
        self._opened: dict[str, object] = {}

    async def ask(self, service: str, operation: str, parameters: JsonObject) -> JsonObject:
        """Send one request.

        Raises:
            Exception: an error of the library; see `failures`.
        """
        from pergola.cloud.aws.library import invoke

        async with self._opening:
            if service not in self._opened:
                self._opened[service] = await self._open(service)
        return await invoke(self._opened[service], operation, parameters)

    async def close(self) -> None:
        """Close all connections."""
        self._opened.clear()
        await self._stack.aclose()

    async def _open(self, service: str) -> object:
        from pergola.cloud.aws.library import Session

        if self._session is None:
            self._session = Session()
        client = await self._session.open(
            service, self.region, self._credentials, self._endpoint_url
        )
        return await self._stack.enter_async_context(client)


class SharedServices:
    """Connections by identity; borrowers must return them.

    Args:
        endpoint_url: for all services, instead of AWS's own.
    """

    def __init__(self, endpoint_url: str) -> None:
        self._endpoint_url = endpoint_url
        self._open: dict[Identity, Services] = {}
        self._users: Counter[Identity] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    def lend(self, identity: Identity) -> Services:
        """Return the connections of an identity."""
        if identity not in self._open:
            credentials, region = identity
            self._open[identity] = Services(region, credentials, self._endpoint_url)
        self._users[identity] += 1
        return self._open[identity]

    async def give_back(self, identity: Identity) -> None:
        """Close the connections of an identity if they have no other users."""
        self._users[identity] -= 1
        if not self._users[identity]:
            del self._users[identity]
            await self._open.pop(identity).close()
