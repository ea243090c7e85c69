"""Decide whether the objects of a ManagedResource are healthy and rolled out."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pergola.api.managed_resource_conditions import Reason
from pergola.api.objects import GroupKind, GroupVersionKind, JsonObject, Key, maps_at
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
    """The result of one check of the objects; None means no problem."""

    unhealthy: tuple[str, str] | None
    rolling: tuple[str, str] | None

    @property
    def is_good(self) -> bool:
        """Whether everything is healthy and rolled out."""
        return self.unhealthy is None and self.rolling is None


class Judge:
    """Checks of the objects in one target."""

    def __init__(self, target: Target, clock: Clock) -> None:
        self._target = target
        self._clock = clock
        self._counting: dict[str, set[Key]] = {}

    async def verdict(self, resource: JsonObject, lost: Lost) -> Verdict:
        """Check all objects of a ManagedResource.

        Args:
            lost: objects that count as missing, even if they exist again.
        """
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
                live = seen.unpack() or await self._target.live(gvk, key)  # large: not kept
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

    def awaiting_pods(self, namespace: str) -> Collection[Key]:
        """Return the ManagedResources with a Deployment in a namespace, whose pods are counted."""
        return self._counting.get(namespace, ())

    def forget(self, key: Key) -> None:
        """Forget a ManagedResource that is no longer checked."""
        for counting in self._counting.values():
            counting.discard(key)


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
