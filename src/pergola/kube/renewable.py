"""Credentials that their owner renews while long-lived clients use them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from pergola.kube.credentials import ClientCertificate, Credentials


class Renewable:
    """Credentials that can be replaced while a client uses them.

    Args:
        read_again: Called before the next request after the server rejected the current
            credentials; calls `renew` if there are others, and does not raise.
    """

    def __init__(self, current: Credentials, read_again: Callable[[], Awaitable[None]]) -> None:
        self._current = current
        self._read_again = read_again
        self._is_rejected = False
        self._replaced = 0
        self._lock = asyncio.Lock()

    @property
    def version(self) -> int:
        """Increases when the client certificate changes."""
        return self._replaced + self._current.version

    def renew(self, credentials: Credentials) -> None:
        """Use other credentials from now on."""
        if credentials.client_certificate() != self._current.client_certificate():
            self._replaced += 1 + self._current.version
        self._current = credentials
        self._is_rejected = False

    async def headers(self) -> Mapping[str, str]:
        """Return the headers of the current credentials."""
        async with self._lock:
            if self._is_rejected:
                self._is_rejected = False
                await self._read_again()
        return await self._current.headers()

    def client_certificate(self) -> ClientCertificate | None:
        """Return the current certificate."""
        return self._current.client_certificate()

    def rejected(self) -> bool:
        """Read the credentials again before the next request; return True."""
        self._current.rejected()
        self._is_rejected = True
        return True
