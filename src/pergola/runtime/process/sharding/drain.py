"""Give up an object: remove both labels in one write, once the shard no longer works on it."""

from collections.abc import Awaitable, Callable
from typing import Final

from pergola.api.objects import GroupVersionKind, Key, labels_of, resource_version_of
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.logging import get_logger
from pergola.runtime.process.sharding.flights import Flights
from pergola.runtime.process.sharding.ring import Assignment, Share

log = get_logger("shard")

WORKERS: Final = 10
"""Drains that wait for a long run must not hold up others."""


def drainer(
    client: Client, gvk: GroupVersionKind, share: Share, flights: Flights[Key]
) -> Callable[[Key], Awaitable[Outcome]]:
    """Return the reconciler that gives up drained objects of a kind.

    Args:
        client: guarded by the Lease of the shard.
    """

    async def reconcile(key: Key) -> Outcome:
        await flights.landed(key)
        try:
            obj = await client.get(gvk, key, metadata_only=True)
            if share.assignment(labels_of(obj)) is not Assignment.DRAINING:
                return DONE
            metadata = {
                "resourceVersion": resource_version_of(obj),
                "labels": {share.shard_label: None, share.drain_label: None},
            }
            await client.patch(gvk, key, {"metadata": metadata})
        except NotFound:
            return DONE
        log.debug("object given up", kind=gvk.kind, object=str(key))
        return DONE

    return reconcile
