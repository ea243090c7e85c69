"""Edits and deletions of managed objects, and the time until they are repaired."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from pergola.api.objects import resource_version_of, uid_of
from pergola.cli.up.story import within

if TYPE_CHECKING:
    from pergola.api.objects import GroupVersionKind, JsonObject, Key
    from pergola.kube.client import Client

_SECONDS: Final = 180.0


async def edit(
    client: "Client", gvk: "GroupVersionKind", key: "Key", change: "JsonObject"
) -> float:
    """Edit the data of an object; return the seconds until the edit is reverted."""
    before = await client.get(gvk, key)
    loop = asyncio.get_running_loop()
    edited = await client.patch(gvk, key, {"data": change})
    began = loop.time()
    await _until(client, gvk, edited, lambda obj: obj.get("data") == before["data"], "reverted")
    return loop.time() - began


async def delete(client: "Client", gvk: "GroupVersionKind", key: "Key") -> float:
    """Delete an object; return the seconds until it is replaced."""
    deleted = await client.get(gvk, key)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await client.delete(gvk, key, uid=uid_of(deleted))
    await _until(client, gvk, deleted, lambda obj: uid_of(obj) != uid_of(deleted), "restored")
    return loop.time() - began


async def _until(
    client: "Client",
    gvk: "GroupVersionKind",
    obj: "JsonObject",
    holds: Callable[["JsonObject"], bool],
    what: str,
) -> None:
    from pergola.api.objects import Key
    from pergola.kube.selectors import select_name
    from pergola.kube.watch import watch

    key = Key.of(obj)
    events = watch(
        client,
        await client.resource(gvk),
        key.namespace,
        fields=select_name(key.name),
        resource_version=resource_version_of(obj),
        timeout_seconds=int(_SECONDS),
    )
    async with within(_SECONDS, f"{gvk.kind} {key} to be {what}"), aclosing(events):
        async for event in events:
            if event.type in ("ADDED", "MODIFIED") and holds(event.object):
                return
