"""The ManagedResources of a shard: those in flight, arriving, and being given up."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from pergola.api.objects import Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.resource_manager.origin import parse_origin
from pergola.resource_manager.source import SeenResource, Source
from pergola.runtime.caching.cache import Change
from pergola.runtime.controlling.controller import Outcome
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.sharding.drain import WORKERS, drainer
from pergola.runtime.process.sharding.flights import Flights
from pergola.runtime.process.sharding.ring import Assignment, Share

Reconcile: TypeAlias = Callable[[Key], Awaitable[Outcome]]
Tracking: TypeAlias = Callable[[Reconcile], Reconcile]

NAME: Final = "drain"


def untracked(reconcile: Reconcile) -> Reconcile:
    """Return the reconciler unchanged: without shards, nothing is given up."""
    return reconcile


def everything(_: str) -> bool:
    """Accept every origin: without shards, all objects are handled here."""
    return True


def origins_here(source: Source, cluster_id: str) -> Callable[[str], bool]:
    """Return whether the ManagedResource in an origin annotation belongs to this shard."""

    def is_here(text: str) -> bool:
        origin = parse_origin(text) if text else None
        if origin is None or origin.cluster_id != cluster_id:
            return False
        return source.resource(Key(origin.namespace, origin.name)) is not None

    return is_here


def arrived(change: Change[SeenResource]) -> bool:
    """Return whether a ManagedResource that was to be given up may be worked on again."""
    old, new = change.old, change.new
    return (
        old is not None
        and new is not None
        and old.assignment is not Assignment.HERE
        and new.assignment is Assignment.HERE
    )


def drain_unit(source: Source, share: Share, flights: Flights[Key], metrics: Metrics) -> Unit:
    """Return the controller that gives up ManagedResources that move to other shards."""
    return Controller(
        NAME,
        drainer(source.client, MANAGED_RESOURCE, share, flights),
        watches=[Watch(source.resources, when=_is_draining)],
        caches=(),
        workers=WORKERS,
        metrics=metrics,
    )


def _is_draining(change: Change[SeenResource]) -> bool:
    return change.new is not None and change.new.assignment is Assignment.DRAINING
