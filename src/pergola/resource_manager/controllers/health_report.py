"""Report verdicts: write ResourcesHealthy and ResourcesProgressing in one request.

The same request records the end of the run that applied new content, if the verdict is the first
about it.
"""

from pergola.api.conditions import get_condition
from pergola.api.managed_resource_conditions import (
    APPLIED,
    HEALTHY,
    HEALTHY_MESSAGE,
    PROGRESSING,
    ROLLED_OUT_MESSAGE,
    Reason,
)
from pergola.api.objects import JsonObject, Key, map_at, maps_at
from pergola.resource_manager.controllers.health_verdict import Verdict
from pergola.resource_manager.controllers.managed_resource.completions import (
    Completion,
    Completions,
)
from pergola.resource_manager.controllers.managed_resource.conditions import Conditions
from pergola.resource_manager.controllers.managed_resource.references import (
    reference_key,
    reference_kind,
)
from pergola.resource_manager.source import Source
from pergola.resource_manager.status import StatusWriter
from pergola.runtime.clock import Clock, monotonic


class Reports:
    """The writer of verdicts."""

    def __init__(self, source: Source, completions: Completions, clock: Clock) -> None:
        self._status = StatusWriter(source)
        self._completions = completions
        self._clock = clock
        self._settling: dict[Key, tuple[tuple[object, ...], float]] = {}

    def settles_in(self, resource: JsonObject, seconds: float) -> float:
        """Return how much longer a bad verdict about new content is held back.

        Args:
            seconds: how long a bad verdict is held back in total.
        """
        conditions = maps_at(resource, "status", "conditions")
        healthy = get_condition(conditions, HEALTHY) or {}
        if healthy.get("reason") != Reason.CHECKS_PENDING:
            return 0.0
        key, basis, now = Key.of(resource), _basis(resource), monotonic()
        known_basis, since = self._settling.get(key, (None, now))
        if known_basis != basis:
            since = now
            self._settling[key] = (basis, since)
        return since + seconds - now

    async def write(
        self,
        stored: JsonObject,
        checked: JsonObject,
        verdict: Verdict | None,
        completion: Completion | None,
    ) -> None:
        """Record a verdict and the end of the run that it is about, or one of them.

        Args:
            stored: the ManagedResource as last seen.
            checked: the same with the end of the run, which the verdict is about.
        """
        key, basis = Key.of(stored), _basis(checked)
        if verdict is not None:
            self._settling.pop(key, None)

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

        await self._status.write(stored, change)
        if completion is not None and self._completions.of(key, completion.uid) is completion:
            self._completions.drop(key)

    def forget(self, key: Key) -> None:
        """Forget a ManagedResource that is no longer checked."""
        self._settling.pop(key, None)


def _basis(resource: JsonObject) -> tuple[object, ...]:
    """Return the state that a verdict is about; once it changes, the verdict is obsolete."""
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
