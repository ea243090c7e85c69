"""Simulate, from an API server's point of view, a process that dies between two writes."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

import orjson

from pergola.api.objects import JsonObject
from pergola.kube.client import Client
from pergola.kube.transport import Transport


class Died(Exception):
    """The process is dead: it sends no more writes."""


async def killed_after(
    writes: int, client: Client, work: Callable[[Client], Awaitable[object]]
) -> bool:
    """Run work with a client that dies after some writes; return whether it was killed.

    By then the API server has carried out these writes, so that none arrives during later checks.
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
    sent = mortal._transport = _Sent(client._transport)
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
    """The transport of a dying process, which completes the requests that it has sent."""

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


class Write(NamedTuple):
    """A write to an API server.

    Attributes:
        path: Of the object, or of the collection for a new one.
    """

    method: str
    path: str
    body: JsonObject


Identify: TypeAlias = Callable[[Write], object]
"""Returns what tells a write from others; None if it does not count."""


class Lives:
    """Successive lives of a process; each ends with a write that no earlier one made.

    Args:
        clients: Of the API servers that it writes to.

    Attributes:
        writes: All that count, in the order in which they were sent.
        count: The number of lives.
    """

    def __init__(self, identify: Identify, *clients: Client) -> None:
        self.writes: list[Write] = []
        self.count = 0
        self._identify = identify
        self._clients = clients
        self._known: set[object] = set()

    async def live(self, work: Callable[..., Awaitable[object]], *, is_mortal: bool = True) -> bool:
        """Call `work` with a client of each API server; return whether it was killed.

        After the kill, only the cleanup of its tasks runs, whose writes are not sent.

        Args:
            is_mortal: Whether a new write is the last one.
        """
        self.count += 1
        life = _Life(self._record, is_mortal=is_mortal)
        clients = [life.client(each) for each in self._clients]
        task = asyncio.ensure_future(work(*clients))
        killed = asyncio.create_task(life.killed.wait())
        await asyncio.wait({task, killed}, return_when=asyncio.FIRST_COMPLETED)
        killed.cancel()
        task.cancel()
        [outcome] = await asyncio.gather(task, return_exceptions=True)
        await life.answered()
        if not life.killed.is_set() and isinstance(outcome, BaseException):
            raise outcome
        return life.killed.is_set()

    def _record(self, write: Write) -> bool:
        """Record a write; return whether it is the first of its kind in all lives."""
        identity = self._identify(write)
        if identity is None:
            return False
        self.writes.append(write)
        is_new = identity not in self._known
        self._known.add(identity)
        return is_new


class _Life:
    """One life: after a new write, no other one is sent."""

    def __init__(self, record: Callable[[Write], bool], *, is_mortal: bool) -> None:
        self.killed = asyncio.Event()
        self._record = record
        self._is_mortal = is_mortal
        self._is_dying = False
        self._transports: list[_Sent] = []

    def client(self, client: Client) -> Client:
        """Return a client that dies with this life."""
        mortal = client.guarded(lambda: None)
        sent = _Recorded(client._transport, self)
        mortal._transport = sent
        self._transports.append(sent)
        return mortal

    def permit(self, write: Write) -> bool:
        """Return whether this write is the last one.

        Raises:
            Died: The last one was sent before.
        """
        if self._is_dying:
            raise Died
        self._is_dying = self._record(write) and self._is_mortal
        return self._is_dying

    async def answered(self) -> None:
        """Return when all requests were answered."""
        for transport in self._transports:
            await transport.answered()


class _Recorded(_Sent):
    """The transport of one life, which reports its writes before it sends them."""

    def __init__(self, transport: Transport, life: _Life) -> None:
        super().__init__(transport)
        self._life = life

    async def request(self, method: str, path: str, **more: Any) -> bytes:
        """Send a request of a process that may be dead.

        Raises:
            Died: It is.
        """
        if method == "GET":
            return await super().request(method, path, **more)
        body = orjson.loads(more.get("body") or b"{}")
        is_last = self._life.permit(Write(method, path, body if isinstance(body, dict) else {}))
        try:
            return await super().request(method, path, **more)
        finally:
            if is_last:
                self._life.killed.set()
