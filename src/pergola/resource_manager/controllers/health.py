"""ResourcesHealthy and ResourcesProgressing follow the live objects (spec 10 §8 and §9).

Both conditions are worked out in one pass over the objects and written in one request, within a
moment of the change that altered them; nothing is polled. Right after new content was applied a
verdict that is not good yet is held back for a few seconds, so that a rollout that succeeds at once
shows no failure. The first verdict is written together with the end of the run that applied it.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pergola.api.conditions import get_condition
from pergola.api.managed_resource_conditions import (
    APPLIED,
    HEALTHY,
    HEALTHY_MESSAGE,
    PROGRESSING,
    ROLLED_OUT_MESSAGE,
    Reason,
)
from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    Key,
    map_at,
    maps_at,
)
from pergola.health import check, needs_pod_count, pods_problem, progressing
from pergola.kube.errors import KubeError, UnknownKind
from pergola.resource_manager.controllers.managed_resource.completions import (
    Completion,
    Completions,
)
from pergola.resource_manager.controllers.managed_resource.conditions import Conditions
from pergola.resource_manager.controllers.managed_resource.references import (
    reference_key,
    reference_kind,
)
from pergola.resource_manager.controllers.managed_resource.triggers import owners
from pergola.resource_manager.controllers.managed_resource.warnings import service_warnings
from pergola.resource_manager.sharing import Tracking, arrived
from pergola.resource_manager.source import SeenResource, Source
from pergola.resource_manager.status import StatusWriter
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
_LONGEST_PERIOD: Final = 180.0
_NAMED_AT_MOST: Final = 3
_SERVICE: Final = GroupKind("", "Service")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one check of the objects; None means no problem."""

    unhealthy: tuple[str, str] | None
    rolling: tuple[str, str] | None

    @property
    def is_good(self) -> bool:
        """Whether everything is healthy and rolled out."""
        return self.unhealthy is None and self.rolling is None


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
        tracked: wraps the reconciler, so that a shard knows what is under way.
        completions: the runs to record together with the first check.
        cluster_id: comes before the origins of objects.
    """
    health = Health(source, target, completions, clock, sync_period=settings.sync_period)

    def to_owners(event: TargetChange) -> Iterator[Key]:
        for key in owners(event, cluster_id):
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
                target.pods.changes, to=lambda change: health.awaiting_pods(change.key.namespace)
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
        self._target = target
        self._completions = completions
        self._clock = clock
        self._sync_period = sync_period
        self._status = StatusWriter(source)
        self._settling: dict[Key, tuple[tuple[object, ...], float]] = {}
        self._lost: dict[Key, set[tuple[GroupVersionKind, Key]]] = {}
        self._counting: dict[str, set[Key]] = {}

    async def reconcile(self, key: Key) -> Outcome:
        """Check the objects of one ManagedResource once."""
        seen = self._source.resource(key)
        if seen is None or not self._checks(seen):
            self._forget(key)
            return DONE
        completion = self._completions.of(key, seen.uid)
        if completion is None and seen.applied not in ("True", "Unknown"):
            return Again(self._sync_period)
        resource = seen.unpack()
        if completion is not None:
            resource = completion.recorded(resource, self._clock.now())
        lost = self._lost.pop(key, set())
        try:
            async with asyncio.timeout(SETTLE_SECONDS if completion is not None else None):
                verdict = await self._look(resource, lost)
        except (KubeError, TimeoutError):
            if completion is None:
                raise
            await self._report(resource, None, completion)
            return Again(0)
        wait = 0.0 if verdict.is_good else self._settles_in(key, resource)
        if wait > 0:
            return Again(wait)
        self._settling.pop(key, None)
        await self._report(resource, verdict, completion)
        return Again(LOST_SECONDS if lost else self._sync_period)

    def lost(self, key: Key, gvk: GroupVersionKind, name: Key) -> None:
        """Note that an object was deleted, to report it even if it is back at the next check."""
        self._lost.setdefault(key, set()).add((gvk, name))

    def awaiting_pods(self, namespace: str) -> set[Key]:
        """Return the ManagedResources with a Deployment in a namespace, whose pods are counted."""
        return self._counting.get(namespace, set())

    def _checks(self, seen: SeenResource) -> bool:
        mine = self._source.responsibility.is_responsible(seen.resource_class)
        return mine and not seen.ignored and not seen.deleting

    def _forget(self, key: Key) -> None:
        self._completions.drop(key)
        self._settling.pop(key, None)
        self._lost.pop(key, None)
        for counting in self._counting.values():
            counting.discard(key)

    # Looking

    async def _look(self, resource: JsonObject, lost: set[tuple[GroupVersionKind, Key]]) -> Verdict:
        unhealthy: list[tuple[str, str]] = []
        rolling: list[tuple[str, str]] = []
        for reference in maps_at(resource, "status", "resources"):
            gvk, key = reference_kind(reference), reference_key(reference)
            if needs_pod_count(gvk):
                self._counting.setdefault(key.namespace, set()).add(Key.of(resource))
            health, rollout = await self._judge(gvk, key, was_lost=(gvk, key) in lost)
            if health is not None:
                unhealthy.append(health)
            if rollout is not None:
                rolling.append((Reason.progressing(gvk.kind), f"{gvk.kind} {key}: {rollout}"))
        return Verdict(_summary(unhealthy), _summary(rolling))

    async def _judge(
        self, gvk: GroupVersionKind, key: Key, *, was_lost: bool
    ) -> tuple[tuple[str, str] | None, str | None]:
        """Return the health problem (reason and message) and the rollout problem of one object."""
        missing = (Reason.missing(gvk.kind), f"{gvk.kind} {key} does not exist")
        try:
            await self._target.watch(gvk)
        except UnknownKind as error:
            return (missing[0], f"{gvk.kind} {key} does not exist: {error}"), None
        if was_lost:
            return missing, None
        seen = self._target.seen(gvk, key) if self._target.covers(gvk, key) else None
        if seen is not None:
            problem, rollout = seen.problem, seen.rollout
            live = None
            if rollout is None and needs_pod_count(gvk):
                live = seen.unpack() or await self._target.live(gvk, key)  # large ones are not kept
        else:
            # Not labelled, not covered by a watch, or absent: only the server knows.
            live = await self._target.live(gvk, key)
            if live is None:
                return missing, None
            problem, rollout = check(live), progressing(live)
        if rollout is None and live is not None and needs_pod_count(gvk):
            pods = await self._target.pods.of(live)
            rollout = pods_problem(live, pods, now=self._clock.now())
        if problem is None:
            return None, rollout
        text = f"{gvk.kind} {key} is unhealthy: {problem}"
        if gvk.group_kind == _SERVICE:
            service = live or await self._target.live(gvk, key) or {}
            text += await service_warnings(self._target.client, service, self._clock)
        return (Reason.unhealthy(gvk.kind), text), rollout

    # Reporting

    def _settles_in(self, key: Key, resource: JsonObject) -> float:
        """Return the seconds for which a bad verdict about new content is held back."""
        conditions = maps_at(resource, "status", "conditions")
        healthy = get_condition(conditions, HEALTHY) or {}
        if healthy.get("reason") != Reason.CHECKS_PENDING:
            return 0.0
        basis, now = _basis(resource), asyncio.get_running_loop().time()
        known = self._settling.get(key)
        if known is None or known[0] != basis:
            self._settling[key] = known = (basis, now)
        return known[1] + SETTLE_SECONDS - now

    async def _report(
        self, resource: JsonObject, verdict: Verdict | None, completion: Completion | None
    ) -> None:
        """Record a verdict and the end of the run that it is about, or one of them."""
        key, basis = Key.of(resource), _basis(resource)

        def change(newest: JsonObject) -> JsonObject | None:
            now = self._clock.now()
            if completion is not None:
                if self._completions.of(key, completion.uid) is not completion:
                    return None  # another run began
                newest = completion.recorded(newest, now)
            if _basis(newest) != basis:
                return None  # the content changed during the check: its own event follows
            conditions = Conditions(newest, now)
            if verdict is not None:
                _set(conditions, verdict)
            return {**map_at(newest, "status"), "conditions": conditions.items}

        await self._status.write(resource, change)
        if completion is not None and self._completions.of(key, completion.uid) is completion:
            self._completions.drop(key)


def verdict_changed(event: TargetChange) -> bool:
    """Return whether an object appeared, vanished, or is healthier or sicker than before."""
    old, new = event.change.old, event.change.new
    return (
        old is None
        or new is None
        or old.uid != new.uid
        or old.problem != new.problem
        or old.rollout != new.rollout
    )


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


def _basis(resource: JsonObject) -> tuple[object, ...]:
    """Return the subject of a verdict; a verdict about anything else must not be written."""
    status = map_at(resource, "status")
    applied = get_condition(maps_at(status, "conditions"), APPLIED) or {}
    references = [(reference_kind(r), reference_key(r)) for r in maps_at(status, "resources")]
    return (
        map_at(resource, "metadata").get("uid"),
        status.get("observedGeneration"),
        status.get("secretsDataChecksum"),
        applied.get("status"),
        tuple(references),
    )


def _set(conditions: Conditions, verdict: Verdict) -> None:
    if verdict.unhealthy is None:
        conditions.set(HEALTHY, "True", Reason.HEALTHY, HEALTHY_MESSAGE)
    else:
        conditions.set(HEALTHY, "False", *verdict.unhealthy)
    if verdict.rolling is None:
        conditions.set(PROGRESSING, "False", Reason.ROLLED_OUT, ROLLED_OUT_MESSAGE)
    else:
        conditions.set(PROGRESSING, "True", *verdict.rolling)


def _summary(problems: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """Summarize: the first problem gives the reason; the message names a few and the count."""
    if not problems:
        return None
    reason, _ = problems[0]
    text = "; ".join(message for _, message in problems[:_NAMED_AT_MOST])
    more = len(problems) - _NAMED_AT_MOST
    return reason, f"{text}; and {more} more" if more > 0 else text
