"""ResourcesHealthy and ResourcesProgressing follow the live objects (spec 10 §8 and §9).

One pass over the objects determines both conditions, and one request writes them, right after the
change that altered them; nothing polls. For a few seconds after a run has applied new content, the
controller holds back a bad verdict, so that a rollout that succeeds quickly shows no failure. It
writes the first verdict together with the end of that run.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pergola.api.objects import GroupVersionKind, Key
from pergola.kube.errors import KubeError
from pergola.resource_manager.controllers.health_report import Reports
from pergola.resource_manager.controllers.health_verdict import Judge, verdict_changed
from pergola.resource_manager.controllers.managed_resource.completions import (
    Completions,
)
from pergola.resource_manager.controllers.managed_resource.triggers import describers, owners
from pergola.resource_manager.sharing import Tracking, arrived
from pergola.resource_manager.source import SeenResource, Source
from pergola.resource_manager.target import Target, TargetChange
from pergola.runtime.caching.cache import Change
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.controller import DONE, Again, Outcome
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics

NAME: Final = "health"
SETTLE_SECONDS: Final = 3.0
LOST_SECONDS: Final = 0.1
UNWATCHED_SECONDS: Final = 5.0
"""Seconds between two checks of pods that no watch covers."""
_LONGEST_PERIOD: Final = 180.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of this controller; times in seconds."""

    workers: int = 5
    sync_period: float = 60.0


def health_unit(
    source: Source,
    target: Target,
    tracked: Tracking,
    completions: Completions,
    settings: Settings,
    cluster_id: str,
    *,
    metrics: Metrics,
    clock: Clock,
) -> Unit:
    """Return the controller of ResourcesHealthy and ResourcesProgressing.

    Args:
        tracked: wraps the reconciler, so that a shard can track its runs.
        completions: the runs to record together with the first check.
        cluster_id: the prefix of the origins of objects.
    """
    health = Health(source, target, completions, clock, sync_period=settings.sync_period)

    def to_owners(event: TargetChange) -> Iterator[Key]:
        for key in {*owners(event, cluster_id), *describers(event, target)}:
            if event.change.new is None:
                health.lost(key, event.gvk, event.change.key)
            yield key

    return Controller(
        NAME,
        tracked(health.reconcile),
        watches=[
            Watch(source.resources, when=health_triggers),
            Watch(source.resources, when=arrived),
            Watch(completions.held, to=lambda key: (key,)),
            Watch(target.objects, to=to_owners, when=verdict_changed),
            Watch(
                target.pods.changes,
                to=lambda change: health.judge.awaiting_pods(change.key.namespace),
            ),
        ],
        caches=(),
        workers=settings.workers,
        metrics=metrics,
        deadline=min(settings.sync_period, _LONGEST_PERIOD) / 2,
    )


class Health:
    """The reconciler of both conditions.

    Args:
        sync_period: seconds between two checks without an event.

    Attributes:
        judge: checks the objects.
    """

    def __init__(
        self,
        source: Source,
        target: Target,
        completions: Completions,
        clock: Clock,
        *,
        sync_period: float,
    ) -> None:
        self._source = source
        self._completions = completions
        self._clock = clock
        self._sync_period = sync_period
        self._reports = Reports(source, completions, clock)
        self._lost: dict[Key, set[tuple[GroupVersionKind, Key]]] = {}
        self.judge = Judge(target, clock)

    async def reconcile(self, key: Key) -> Outcome:
        """Check the objects of one ManagedResource once."""
        seen = self._source.resource(key)
        if seen is None or not self._checks(seen):
            self._forget(key)
            return DONE
        completion = self._completions.of(key, seen.uid)
        if completion is None and seen.applied not in ("True", "Unknown"):
            self._lost.pop(key, None)  # it would be outdated at the next check
            return Again(self._sync_period)
        stored = seen.unpack()
        resource = completion.recorded(stored, self._clock.now()) if completion else stored
        lost = self._lost.pop(key, set())
        try:
            async with asyncio.timeout(SETTLE_SECONDS if completion is not None else None):
                verdict = await self.judge.verdict(resource, lost)
        except (KubeError, TimeoutError):
            if completion is None:
                raise
            await self._reports.write(stored, resource, None, completion)
            return Again(0)
        wait = 0.0 if verdict.is_good else self._reports.settles_in(resource, SETTLE_SECONDS)
        if wait > 0:
            return Again(wait)
        await self._reports.write(stored, resource, verdict, completion)
        if lost:
            return Again(LOST_SECONDS)
        unwatched = verdict.waits_for_unwatched
        return Again(min(UNWATCHED_SECONDS, self._sync_period) if unwatched else self._sync_period)

    def lost(self, key: Key, gvk: GroupVersionKind, name: Key) -> None:
        """Remember a deleted object, to report it even if it exists again at the next check."""
        self._lost.setdefault(key, set()).add((gvk, name))

    def _checks(self, seen: SeenResource) -> bool:
        mine = self._source.responsibility.is_responsible(seen.resource_class)
        return mine and not seen.ignored and not seen.deleting

    def _forget(self, key: Key) -> None:
        self._completions.drop(key)
        self._lost.pop(key, None)
        self._reports.forget(key)
        self.judge.forget(key)


def health_triggers(change: Change[SeenResource]) -> bool:
    """Return whether a change of a ManagedResource requires a check (spec 10 §8.1)."""
    old, new = change.old, change.new
    if new is None or old is None or old.uid != new.uid:
        return True
    return (
        old.resource_class != new.resource_class
        or old.applied != new.applied
        or (old.ignored and not new.ignored)
    )
