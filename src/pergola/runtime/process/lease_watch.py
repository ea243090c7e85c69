"""A watch of one Lease: a candidate learns at once that nobody holds it."""

from collections.abc import Callable, Coroutine
from typing import TypeAlias

from pergola.api.kinds import LEASE
from pergola.api.objects import JsonObject, Key, map_at
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Change

Follow: TypeAlias = Callable[[Callable[[], None]], Coroutine[None, None, None]]
"""A coroutine that calls its argument whenever a Lease has no holder, until it is cancelled."""


def follow(client: Client, key: Key) -> Follow:
    """Return what follows a Lease by a watch; one that the server refuses is tried again."""

    async def run(freed: Callable[[], None]) -> None:
        def notice(change: Change[str]) -> None:
            if not change.new:
                freed()

        cache = Cache(
            client, LEASE, holder, namespace=key.namespace, fields=f"metadata.name={key.name}"
        )
        cache.subscribe(notice)
        await cache.run()

    return run


def holder(lease: JsonObject) -> str:
    """Return the identity of the holder of a Lease; empty if nobody holds it."""
    identity = map_at(lease, "spec").get("holderIdentity")
    return identity if isinstance(identity, str) else ""
