"""The states of one object, or of all objects of a kind: now, and after each change.

They are watched; an object is polled only if the client may not list and watch its kind.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import Final, TypeAlias

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import (
    ApiError,
    Forbidden,
    Gone,
    KubeError,
    TooManyRequests,
    Unreachable,
    wait_asked_by,
)
from pergola.kube.selectors import select_name
from pergola.kube.watch import watch

_WATCH_SECONDS: Final = 300
_PAUSE_SECONDS: Final = 1.0

State: TypeAlias = JsonObject | None
"""An object, or None while it does not exist."""
States: TypeAlias = AsyncGenerator[State]
"""The states of one object, without end; some may be skipped, but never the last one."""
Collection: TypeAlias = Mapping[Key, JsonObject]
"""All objects of a kind, by key."""


async def watched(client: Client, gvk: GroupVersionKind, key: Key, interval: float) -> States:
    """Yield the states of an object.

    A client with copies of the kind follows those. After the first read, an API server that is
    unreachable or overloaded is waited for.

    Args:
        interval: seconds between two reads of a client that may not list and watch the kind.

    Raises:
        KubeError: the object cannot be read.
    """
    followed = client.follow(gvk, key)
    if followed is not None:
        async with aclosing(followed) as states:
            async for state in states:
                yield state
    read = False
    try:
        while True:
            pause = _PAUSE_SECONDS
            try:
                async with aclosing(_list_and_watch(client, gvk, key)) as states:
                    async for state in states:
                        read = True
                        yield state
            except KubeError as error:
                if not read or not _may_pass(error):
                    raise
                pause = max(_PAUSE_SECONDS, wait_asked_by(error))
            await asyncio.sleep(pause)
    except Forbidden:
        async with aclosing(polled(client, gvk, key, interval)) as states:
            async for state in states:
                yield state


async def all_watched(
    client: Client, gvk: GroupVersionKind, namespace: str | None = None
) -> AsyncGenerator[Collection]:
    """Yield the metadata of all objects of a kind, now and after each change.

    Raises:
        KubeError: they cannot be read; after the first read, only for errors that are not
            temporary.
    """
    read = False
    while True:
        pause = _PAUSE_SECONDS
        try:
            async with aclosing(_collections(client, gvk, namespace)) as collections:
                async for collection in collections:
                    read = True
                    yield collection
        except KubeError as error:
            if not read or not _may_pass(error):
                raise
            pause = max(_PAUSE_SECONDS, wait_asked_by(error))
        await asyncio.sleep(pause)


async def _collections(
    client: Client, gvk: GroupVersionKind, namespace: str | None
) -> AsyncGenerator[Collection]:
    found: dict[Key, JsonObject] = {}
    version = ""
    async for page in client.pages(gvk, namespace, metadata_only=True):
        found |= {Key.of(obj): obj for obj in page.items}
        version = page.resource_version
    yield found
    changes = watch(
        client,
        await client.resource(gvk),
        namespace,
        metadata_only=True,
        resource_version=version,
        timeout_seconds=_WATCH_SECONDS,
    )
    with suppress(Gone, Unreachable):
        async with aclosing(changes):
            async for change in changes:
                if change.type in ("ADDED", "MODIFIED"):
                    found[Key.of(change.object)] = change.object
                elif change.type == "DELETED":
                    found.pop(Key.of(change.object), None)
                else:
                    continue
                yield found


async def polled(client: Client, gvk: GroupVersionKind, key: Key, interval: float) -> States:
    """Yield the states of an object by polling, which only needs the permission `get`.

    Raises:
        KubeError: the object cannot be read.
    """
    read = False
    while True:
        try:
            yield await client.find(gvk, key)
            read = True
        except KubeError as error:
            if not read or not _may_pass(error):
                raise
        await asyncio.sleep(interval)


async def _list_and_watch(client: Client, gvk: GroupVersionKind, key: Key) -> States:
    fields = select_name(key.name)
    async with aclosing(client.pages(gvk, key.namespace, fields=fields)) as pages:
        now = await anext(pages)
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


def _may_pass(error: KubeError) -> bool:
    overloaded = isinstance(error, ApiError) and error.code >= 500
    return overloaded or isinstance(error, Unreachable | TooManyRequests | Gone)
