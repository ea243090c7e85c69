"""The controller of Gardens: what triggers it (spec 20 §8)."""

from typing import Final, NamedTuple

from pergola.api.objects import (
    JsonObject,
    deletion_timestamp_of,
    generation_of,
)
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.operator_v1alpha1.operations import OPERATIONS
from pergola.flow.metrics import FlowMetrics
from pergola.kube.client import Client
from pergola.operator.garden.operation import requested_by
from pergola.operator.garden.reconcile import GardenReconciler, Settings, is_ignored
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.events import Recorder
from pergola.runtime.controlling.unit import Unit, controller_unit
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics

NAME: Final = "garden"


def garden_unit(
    client: Client,
    virtual: VirtualCluster,
    settings: Settings,
    *,
    metrics: Metrics,
    workers: int = 1,
    clock: Clock | None = None,
) -> Unit:
    """Return the controller that reconciles Gardens.

    Args:
        client: Of the runtime cluster.
    """
    clock = clock or SystemClock()
    events = Recorder(client, "garden-controller", clock=clock)
    flows = metrics.register(FlowMetrics)
    reconciler = GardenReconciler(client, virtual, settings, clock, events, flows)
    gardens = Cache(client, GARDEN, keep=request_in)
    return controller_unit(
        NAME,
        reconciler.reconcile,
        watches=[Watch(gardens, when=matters)],
        metrics=metrics,
        workers=workers,
        tasks=[events.run],
    )


class Request(NamedTuple):
    """The part of a Garden whose change requires a reconciliation."""

    generation: int
    operations: frozenset[str]
    is_deleted: bool
    is_ignored: bool


def request_in(garden: JsonObject) -> Request:
    """Return what a Garden requests; labels, other annotations and the status do not matter."""
    return Request(
        generation_of(garden),
        OPERATIONS.intersection(requested_by(garden)),
        deletion_timestamp_of(garden) is not None,
        is_ignored(garden),
    )


def matters(change: Change[Request]) -> bool:
    """Return whether an event requires a reconciliation.

    Those are: a Garden that appears, a new generation, a deletion, another set of requested
    operations, and the end of a pause.
    """
    old, new = change.old, change.new
    if new is None or new.is_ignored:
        return False
    if old is None or old._replace(operations=new.operations) != new:
        return True
    return bool(new.operations) and new.operations != old.operations
