"""The controllers of Gardenlets, which run while the virtual cluster is reachable."""

import asyncio
from typing import Final, NamedTuple

from pergola.charts import Blobs, Helm, Puller
from pergola.controllers.condition_metrics import ConditionMetrics
from pergola.kube.client import Client
from pergola.operator.chart_source import Charts
from pergola.operator.copies import Copies
from pergola.operator.gardenlet.chart_updates import ChartUpdates, of_updates
from pergola.operator.gardenlet.reconcile import Clusters, GardenletReconciler
from pergola.operator.gardenlet.triggers import gardenlets_of, of_deployment
from pergola.operator.gardenlet.values import Inherited
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.events import Recorder
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.metrics import Metrics

NAME: Final = "gardenlet"
UPDATES: Final = "gardenlet-chart"

_DEADLINE: Final = 180.0


class Environment(NamedTuple):
    """The dependencies of the controllers of Gardenlets.

    Attributes:
        blobs: The charts that were pulled before.
        inherited: The values that gardenlets inherit from the operator.
    """

    copies: Copies
    helm: Helm
    blobs: Blobs
    inherited: Inherited
    metrics: Metrics
    clock: Clock = SystemClock()


def gardenlets(environment: Environment, virtual: Client, *, workers: int = 1) -> Unit:
    """Return the controller that deploys gardenlets."""
    runtime, clock = environment.copies.client, environment.clock
    events = Recorder(virtual, "gardenlet-controller", clock=clock)
    reconciler = GardenletReconciler(
        Clusters(runtime, virtual),
        Charts(virtual, Puller(environment.blobs), environment.helm),
        environment.inherited,
        events,
        clock,
    )
    seen = gardenlets_of(virtual)
    conditions = environment.metrics.register(ConditionMetrics)

    async def report_conditions() -> None:
        end = conditions.follow(seen, lambda gardenlet: gardenlet.conditions)
        try:
            await asyncio.Event().wait()
        finally:
            end()  # another server may have other Gardenlets

    return Controller(
        NAME,
        reconciler.reconcile,
        watches=of_deployment(virtual, seen),
        metrics=environment.metrics,
        workers=workers,
        deadline=_DEADLINE,
        tasks=[events.run, report_conditions],
    )


def chart_updates(environment: Environment, virtual: Client) -> Unit:
    """Return the controller that updates Gardenlets to the charts of a new version."""
    version = environment.inherited.version
    updates = ChartUpdates(environment.copies.client, virtual, environment.inherited)
    return Controller(
        UPDATES,
        updates.reconcile,
        watches=of_updates(environment.copies, gardenlets_of(virtual), version),
        metrics=environment.metrics,
        deadline=_DEADLINE,
    )
