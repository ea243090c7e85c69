"""The unit of the ManagedResource controller: its triggers and parts."""

import asyncio
from typing import Final

from pergola.resource_manager.controllers.managed_resource.apply import Applier
from pergola.resource_manager.controllers.managed_resource.completions import Completions
from pergola.resource_manager.controllers.managed_resource.fights import FightLimit
from pergola.resource_manager.controllers.managed_resource.own_writes import Refusals
from pergola.resource_manager.controllers.managed_resource.planning import Planner
from pergola.resource_manager.controllers.managed_resource.prune import Pruner
from pergola.resource_manager.controllers.managed_resource.reconcile import (
    ManagedResources,
    Settings,
)
from pergola.resource_manager.controllers.managed_resource.triggers import (
    describers,
    drifted,
    owners,
    resource_triggers,
    scaling,
    secret_triggers,
)
from pergola.resource_manager.controllers.secret import SecretRelease
from pergola.resource_manager.sharing import Tracking, arrived
from pergola.resource_manager.source import Source
from pergola.resource_manager.target import Target
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.events import Recorder
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics

NAME: Final = "managedresource"


def managed_resource_unit(
    source: Source,
    target: Target,
    secrets: SecretRelease,
    tracked: Tracking,
    completions: Completions,
    settings: Settings,
    cluster_id: str,
    *,
    collects_garbage: bool,
    metrics: Metrics,
    clock: Clock,
) -> Unit:
    """Return the controller that applies the objects of ManagedResources.

    Args:
        tracked: wraps the reconciler, so that a shard knows what is under way.
        completions: receives the runs to record together with the first check.
        cluster_id: the prefix of origins, so that several sources can share a target.
        collects_garbage: whether deleting unused ConfigMaps and Secrets is left to the garbage
            collector.
    """
    mine = source.responsibility
    applier = Applier(target, FightLimit(asyncio.get_running_loop().time, clock))
    events = Recorder(
        source.client, f"{NAME}-controller", clock=clock, action="Apply", creates_only=True
    )
    reconciler = ManagedResources(
        source,
        secrets,
        Planner(source, target, managed_by=settings.managed_by),
        applier,
        Pruner(target, clock, collects_garbage),
        completions,
        settings,
        cluster_id,
        events,
        metrics.register(Refusals),
        clock,
    )
    return Controller(
        NAME,
        tracked(reconciler.reconcile),
        watches=[
            Watch(source.resources, when=lambda change: resource_triggers(change, mine)),
            Watch(source.resources, when=arrived),
            Watch(target.describers.contended, to=lambda key: (key,)),
            Watch(target.autoscalers.changes, to=lambda change: scaling(change, target)),
            Watch(source.secrets, to=lambda change: secret_triggers(change, source)),
            Watch(
                target.objects,
                to=lambda event: {*owners(event, cluster_id), *describers(event, target)},
                when=lambda event: drifted(event, applier.settled.is_expected),
            ),
        ],
        caches=(),
        workers=settings.workers,
        metrics=metrics,
        deadline=settings.sync_period,
        tasks=[events.run],
    )
