"""The reads of care: caches, and answers of servers; no run lists objects (spec 21 §3.2)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from pergola.api.objects import JsonObject, deletion_timestamp_of
from pergola.api.operator_v1alpha1 import Garden, garden_from
from pergola.api.operator_v1alpha1.garden import (
    OBSERVABILITY_COMPONENTS_HEALTHY,
    RUNTIME_COMPONENTS_HEALTHY,
    VIRTUAL_COMPONENTS_HEALTHY,
    VIRTUAL_GARDEN_API_SERVER_AVAILABLE,
)
from pergola.api.schema.read import Malformed
from pergola.garden.components.managed_resources import Expected, expected
from pergola.garden.landscape import Landscape
from pergola.operator.care.api_server import HealthEndpoint, Probe
from pergola.operator.care.check import Observed, Unable, Verdict
from pergola.operator.care.extras import EXTRAS, Extras
from pergola.operator.care.prometheus import Query, check_prometheuses, pods_of
from pergola.operator.care.settings import Settings
from pergola.operator.care.watches import SeenPart, Watches
from pergola.runtime.caching.cache import Cache
from pergola.runtime.caching.view import View
from pergola.runtime.clock import monotonic
from pergola.runtime.logging import get_logger
from pergola.runtime.task_group import TaskGroup

log = get_logger("garden-care")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Observer:
    """Gathers the observations of a run.

    Attributes:
        template: Returns the landscape of a Garden, without the parts that are read from clusters.
        query: Sends a query to a Prometheus.
    """

    watches: Watches
    virtual: HealthEndpoint
    template: Callable[[Garden], Landscape]
    settings: Settings
    query: Query
    extras: Extras

    async def observe(self, garden: JsonObject) -> Observed:
        """Return the present state, within `settings.patience`."""
        watches, timed = self.watches, Timed()
        async with TaskGroup() as group:
            probe = group.create_task(timed(self._probe(), VIRTUAL_GARDEN_API_SERVER_AVAILABLE))
            prometheus = group.create_task(
                timed(self._prometheus(), OBSERVABILITY_COMPONENTS_HEALTHY)
            )
            extras = group.create_task(timed(self.extras.observe(garden), *EXTRAS))
            resources = group.create_task(
                timed(self._unsynced(watches.resources), RUNTIME_COMPONENTS_HEALTHY)
            )
            parts = [
                group.create_task(timed(self._unsynced((cache,)), VIRTUAL_COMPONENTS_HEALTHY))
                for cache in (watches.etcds, watches.deployments)
            ]
        etcds, deployments = (task.result() for task in parts)
        return Observed(
            resources=resources.result() or watches.seen_resources(),
            expected=self._expected(garden),
            etcds=etcds or _problems(watches.etcds),
            deployments=deployments or _problems(watches.deployments),
            probe=probe.result(),
            prometheus=prometheus.result(),
            extras=extras.result(),
            once=self.settings.counts_once,
            seconds=timed.seconds,
        )

    def _expected(self, garden: JsonObject) -> Sequence[Expected]:
        """Return the ManagedResources that must exist; a Garden under deletion needs none."""
        if deletion_timestamp_of(garden):
            return ()
        try:
            return expected(self.template(garden_from(garden)))
        except Malformed as error:
            log.error("cannot tell which ManagedResources a Garden needs", error=str(error))
            return ()

    async def _probe(self) -> Probe | None:
        limit = self.settings.patience
        try:
            async with asyncio.timeout(limit):
                return await self.virtual.probe()
        except TimeoutError:
            return Probe(0, f"no answer within {limit:g} seconds", limit)

    async def _prometheus(self) -> Verdict:
        if not self.settings.queries_prometheus:
            return None
        cache = self.watches.prometheuses
        unable = await self._unsynced((cache,))
        return unable or await check_prometheuses(pods_of(cache.items()), self.query)

    async def _unsynced(self, caches: Sequence[Cache[Any] | View[Any]]) -> Unable | None:
        """Return why a cache cannot be read, or None, after waiting for its first list."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.patience):
                for cache in caches:
                    await cache.synced()
        problems = [
            f"failed listing {_plural(cache.gvk.kind)} in namespace {cache.namespace}: "
            f"{cache.problem or 'no answer yet'}"
            for cache in caches
            if not cache.is_synced
        ]
        return Unable("; ".join(problems)) if problems else None


class Timed:
    """Measures how long it takes to observe what conditions are about.

    Attributes:
        seconds: By condition; of several observations for one, the longest.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    async def __call__(self, work: Awaitable[T], *conditions: str) -> T:
        """Return the result of some work, and note how long it took."""
        start = monotonic()
        result = await work
        for condition in conditions:
            took = monotonic() - start
            self.seconds[condition] = max(took, self.seconds.get(condition, 0.0))
        return result


def _plural(kind: str) -> str:
    return f"{kind}es" if kind.endswith("s") else f"{kind}s"


def _problems(cache: View[SeenPart]) -> dict[str, str]:
    return {key.name: seen.problem for key, seen in cache.items()}
