"""The controller of Gardens, and its triggers (spec 20 §8, 'Beyond' 16)."""

from typing import Final

from pergola.api.objects import Key
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.flow.metrics import FlowMetrics
from pergola.operator.copies import Copies
from pergola.operator.reconcile.interruption import Interruptible
from pergola.operator.reconcile.named_objects import named_object_watches
from pergola.operator.reconcile.own_objects import OwnObjects
from pergola.operator.reconcile.reconcile import GardenReconciler, Settings, is_ignored
from pergola.operator.reconcile.triggers import matters, request_in
from pergola.operator.seeds import SeedWatch
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.runtime.caching.view import View
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.events import Recorder
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch, gone
from pergola.runtime.metrics import Metrics

NAME: Final = "garden"


def garden_unit(
    copies: Copies,
    virtual: VirtualCluster,
    settings: Settings,
    *,
    metrics: Metrics,
    workers: int = 1,
    clock: Clock | None = None,
) -> Unit:
    """Return the controller that reconciles Gardens.

    Args:
        copies: Of the runtime cluster.
    """
    clock = clock or SystemClock()
    client = copies.client
    events = Recorder(client, "garden-controller", clock=clock)
    flows = metrics.register(FlowMetrics)
    seeds, own = SeedWatch(virtual), OwnObjects(client, copies.all())
    reconciler = GardenReconciler(client, virtual, seeds, own, settings, clock, events, flows)
    gardens = View(copies.of(GARDEN), request_in)

    interruptible = Interruptible(gardens, reconciler.reconcile)

    def every_garden(_: object) -> list[Key]:
        return [key for key, request in gardens.items() if not request.is_ignored]

    return Controller(
        NAME,
        interruptible.reconcile,
        watches=[
            Watch(gardens, when=matters),
            # The next Garden is now the oldest.
            Watch(gardens, to=every_garden, when=gone),
            *named_object_watches(copies, is_ignored),
            Watch(seeds.changed, to=every_garden),
            Watch(own.vanished, to=every_garden),
        ],
        metrics=metrics,
        # One Garden is reconciled; the other worker can report to a second Garden in the meantime.
        workers=workers + 1,
        tasks=[events.run, seeds.run, own.run],
    )
