"""Decide whether the objects of a ManagedResource are healthy and rolled out."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pergola.api.conditions import get_condition
from pergola.api.managed_resource_conditions import PROGRESSING, Reason
from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    Key,
    generation_of,
    maps_at,
    uid_of,
)
from pergola.api.texts import abridged
from pergola.health import check, needs_pod_count, pods_problem, progressing
from pergola.kube.errors import UnknownKind
from pergola.resource_manager.controllers.managed_resource.references import (
    reference_key,
    reference_kind,
)
from pergola.resource_manager.controllers.managed_resource.warnings import (
    service_warnings,
)
from pergola.resource_manager.target import Target, TargetChange
from pergola.runtime.clock import Clock

_NAMED_AT_MOST: Final = 3
_SERVICE: Final = GroupKind("", "Service")

Lost: TypeAlias = Collection[tuple[GroupVersionKind, Key]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one check of the objects; None means no problem.

    Attributes:
        waits_for_unwatched: whether a rollout waits for pods that only the server knows.
    """

    unhealthy: tuple[str, str] | None
    rolling: tuple[str, str] | None
    waits_for_unwatched: bool = False

    @property
    def is_good(self) -> bool:
        """Whether everything is healthy and rolled out."""
        return self.unhealthy is None and self.rolling is None


@dataclass(slots=True)
class _Check:
    """The shared state of the checks of one ManagedResource's objects.

    Attributes:
        was_rolled_out: whether its status says that everything is rolled out.
        known: the uids of Deployments whose pods were all watched before.
        watched: those whose pods are all watched now.
    """

    was_rolled_out: bool
    known: Collection[str]
    watched: set[str] = field(default_factory=set)
    waits_for_unwatched: bool = False


def _is_rolled_out(resource: JsonObject) -> bool:
    conditions = maps_at(resource, "status", "conditions")
    return (get_condition(conditions, PROGRESSING) or {}).get("status") == "False"


class Judge:
    """Checks of the objects in one target."""

    def __init__(self, target: Target, clock: Clock) -> None:
        self._target = target
        self._clock = clock
        self._counting: dict[str, set[Key]] = {}
        self._watched_pods: dict[Key, set[str]] = {}

    async def verdict(self, resource: JsonObject, lost: Lost) -> Verdict:
        """Check all objects of a ManagedResource.

        Args:
            lost: objects that count as missing, even if they exist again.
        """
        unhealthy: list[tuple[str, str]] = []
        rolling: list[tuple[str, str]] = []
        key_of_all = Key.of(resource)
        this = _Check(_is_rolled_out(resource), self._watched_pods.get(key_of_all, frozenset()))
        for reference in maps_at(resource, "status", "resources"):
            gvk, key = reference_kind(reference), reference_key(reference)
            if needs_pod_count(gvk):
                self._counting.setdefault(key.namespace, set()).add(key_of_all)
            health, rollout = await self._judge(gvk, key, this, was_lost=(gvk, key) in lost)
            if health is not None:
                unhealthy.append(health)
            if rollout is not None:
                rolling.append((Reason.progressing(gvk.kind), f"{gvk.kind} {key}: {rollout}"))
        self._watched_pods[key_of_all] = this.watched
        return Verdict(_summary(unhealthy), _summary(rolling), this.waits_for_unwatched)

    async def _judge(
        self, gvk: GroupVersionKind, key: Key, this: _Check, *, was_lost: bool
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
                live = seen.unpack() or await self._target.live(gvk, key)  # large: not kept
        else:
            # Not labelled, not covered by a watch, or absent: only the server knows.
            live = await self._target.live(gvk, key)
            if live is None:
                return missing, None
            problem, rollout = check(live), progressing(live)
        uid = seen.uid if seen is not None else uid_of(live or {})
        if uid in this.known:
            this.watched.add(uid)
        if rollout is None and live is not None and needs_pod_count(gvk):
            rollout = await self._count(live, this)
        if problem is None:
            return None, rollout
        text = f"{gvk.kind} {key} is unhealthy: {problem}"
        if gvk.group_kind == _SERVICE:
            service = live or await self._target.live(gvk, key) or {}
            text += await service_warnings(self._target.client, service, self._clock)
        return (Reason.unhealthy(gvk.kind), text), rollout

    async def _count(self, deployment: JsonObject, this: _Check) -> str | None:
        """Return the problem of a Deployment with too many or too few pods.

        Pods from before its template had our label are not watched. The server is asked for them
        once, when everything else is rolled out, and not for a Deployment that always had the label
        or was reported as rolled out before.
        """
        pods, uid = self._target.pods, uid_of(deployment)
        problem = pods_problem(deployment, await pods.of(deployment), now=self._clock.now())
        if not pods.are_watched(deployment):
            this.watched.discard(uid)
            return problem
        if uid in this.watched or this.was_rolled_out or generation_of(deployment) <= 1:
            this.watched.add(uid)
            return problem
        if problem is None:
            listed = await pods.listed(deployment)
            problem = pods_problem(deployment, listed, now=self._clock.now())
            if problem is None:
                this.watched.add(uid)
            this.waits_for_unwatched |= problem is not None
        return problem

    def awaiting_pods(self, namespace: str) -> Collection[Key]:
        """Return the ManagedResources with a Deployment in a namespace, whose pods are counted."""
        return self._counting.get(namespace, ())

    def forget(self, key: Key) -> None:
        """Forget a ManagedResource that is no longer checked."""
        for counting in self._counting.values():
            counting.discard(key)
        self._watched_pods.pop(key, None)


def verdict_changed(event: TargetChange) -> bool:
    """Return whether an object appeared or disappeared, or its health changed."""
    old, new = event.change.old, event.change.new
    return (
        old is None
        or new is None
        or old.uid != new.uid
        or old.problem != new.problem
        or old.rollout != new.rollout
    )


def _summary(problems: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """Summarize: the first problem gives the reason; the message names a few and the count."""
    if not problems:
        return None
    reason, _ = problems[0]
    return reason, abridged([message for _, message in problems], _NAMED_AT_MOST, separator="; ")
