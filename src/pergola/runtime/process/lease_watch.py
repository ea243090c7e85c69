"""Watch one Lease, so that a candidate learns at once when it becomes free."""

from collections.abc import Callable, Coroutine
from typing import TypeAlias

from pergola.api.kinds import LEASE
from pergola.api.leases import holder_of
from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Change

Follow: TypeAlias = Callable[[Callable[[], None]], Coroutine[None, None, None]]
"""A coroutine that calls its argument whenever a Lease has no holder, until it is cancelled."""


def follow(client: Client, key: Key) -> Follow:
    """Return a function that follows a Lease, and retries a watch that the server refuses."""

    async def run(freed: Callable[[], None]) -> None:
        def notice(change: Change[str]) -> None:
            if not change.new:
                freed()

        cache = Cache(
            client, LEASE, holder_of, namespace=key.namespace, fields=f"metadata.name={key.name}"
        )
        cache.subscribe(notice)
        await cache.run()

    return run
