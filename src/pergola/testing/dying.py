"""A process that dies between two of its writes, as far as an API server can tell."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from pergola.kube.client import Client
from pergola.kube.transport import Transport


class Died(Exception):
    """The process is dead: it sends no more writes."""


async def killed_after(
    writes: int, client: Client, work: Callable[[Client], Awaitable[object]]
) -> bool:
    """Do some work with a client that is dead after some writes; return whether it was killed.

    The API server has carried out these writes then: no late one changes what a test looks at.
    """
    left = writes
    is_dead = False

    def permit() -> None:
        nonlocal left, is_dead
        if left == 0:
            is_dead = True
            raise Died
        left -= 1

    mortal = client.guarded(permit)
    sent = mortal._transport = _Sent(client._transport)  # noqa: SLF001 - it is a double of both
    with suppress(Died):
        try:
            await work(mortal)
        except ExceptionGroup as group:
            alive = group.split(Died)[1]
            if alive is not None:
                raise alive from None
        finally:
            await sent.answered()
    return is_dead


class _Sent(Transport):
    """The transport of a process that dies, whose requests are carried out nevertheless."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._requests: set[asyncio.Task[bytes]] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    async def request(self, *args: Any, **more: Any) -> bytes:
        """Send a request, and let it go on if this call is cancelled."""
        request = asyncio.create_task(self._transport.request(*args, **more))
        self._requests.add(request)
        return await asyncio.shield(request)

    async def answered(self) -> None:
        """Return when all requests were answered."""
        await asyncio.gather(*self._requests, return_exceptions=True)
