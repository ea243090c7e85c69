"""What an object looks like now and after each change, for those who wait for it.

Waiting is watching; only who may not watch a kind asks again and again.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Final, TypeAlias

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client, ObjectList
from pergola.kube.errors import (
    ApiError,
    Forbidden,
    Gone,
    KubeError,
    NotFound,
    TooManyRequests,
    Unreachable,
)
from pergola.kube.watch import watch

_WATCH_SECONDS: Final = 300
_PAUSE_SECONDS: Final = 1.0

State: TypeAlias = JsonObject | None
"""An object, or None while there is none."""
States: TypeAlias = AsyncGenerator[State]
"""The states of one object, for ever; some may be passed over, but never the last one."""


async def watched(client: Client, gvk: GroupVersionKind, key: Key, interval: float) -> States:
    """The states of an object.

    Once it was read, an API server that is away or overloaded for a while is waited for.

    Args:
        interval: seconds between two reads of somebody who may not list and watch the kind.

    Raises:
        KubeError: the object cannot be read.
    """
    read = False
    try:
        while True:
            try:
                async with aclosing(_list_and_watch(client, gvk, key)) as seen:
                    async for state in seen:
                        read = True
                        yield state
            except KubeError as error:
                if not read or not _may_pass(error):
                    raise
            await asyncio.sleep(_PAUSE_SECONDS)
    except Forbidden:
        async with aclosing(_polled(client, gvk, key, interval)) as seen:
            async for state in seen:
                yield state


class Latest:
    """The latest state of an object."""

    def __init__(self) -> None:
        self._arrived: asyncio.Queue[State | Exception] = asyncio.Queue()

    async def next(self, until: float) -> State:
        """The next state.

        Args:
            until: the time of the event loop at which it is given up.

        Raises:
            TimeoutError: there was none until then.
            KubeError: the object cannot be read any more.
        """
        async with asyncio.timeout_at(until):
            arrived = await self._arrived.get()
        if isinstance(arrived, Exception):
            raise arrived
        return arrived

    async def follow(self, states: States) -> None:
        """Takes in states until cancelled; the error that ends them is what `next` raises."""
        try:
            async with aclosing(states):
                async for state in states:
                    self._arrived.put_nowait(state)
        except Exception as error:
            self._arrived.put_nowait(error)


@asynccontextmanager
async def following(states: States) -> AsyncGenerator[Latest]:
    """Follows states while the block lasts."""
    latest = Latest()
    task = asyncio.create_task(latest.follow(states))
    try:
        yield latest
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _list_and_watch(client: Client, gvk: GroupVersionKind, key: Key) -> States:
    fields = f"metadata.name={key.name}"
    pages = client.pages(gvk, key.namespace, fields=fields)
    async with aclosing(pages):
        now: ObjectList = await anext(pages)
    yield now.items[0] if now.items else None
    changes = watch(
        client,
        await client.resource(gvk),
        key.namespace,
        fields=fields,
        resource_version=now.resource_version,
        timeout_seconds=_WATCH_SECONDS,
    )
    with suppress(Gone, Unreachable):
        async with aclosing(changes):
            async for change in changes:
                if change.type in ("ADDED", "MODIFIED"):
                    yield change.object
                elif change.type == "DELETED":
                    yield None


async def _polled(client: Client, gvk: GroupVersionKind, key: Key, interval: float) -> States:
    read = False
    while True:
        try:
            yield await client.get(gvk, key)
            read = True
        except NotFound:
            read = True
            yield None
        except KubeError as error:
            if not read or not _may_pass(error):
                raise
        await asyncio.sleep(interval)


def _may_pass(error: KubeError) -> bool:
    overloaded = isinstance(error, ApiError) and error.code >= 500
    return overloaded or isinstance(error, Unreachable | TooManyRequests | Gone)
