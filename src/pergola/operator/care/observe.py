"""The reads of care: caches, and answers of servers; no run lists objects (spec 21 §3.2)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Self, TypeVar

from pergola.api.kinds import DEPLOYMENT
from pergola.api.objects import JsonObject, Key, deletion_timestamp_of, metadata_of
from pergola.api.operator_config import OperatorConfiguration
from pergola.api.operator_config.feature_gates import feature_gates_of
from pergola.api.operator_v1alpha1 import GARDEN, Garden, garden_from
from pergola.api.operator_v1alpha1.garden import (
    OBSERVABILITY_COMPONENTS_HEALTHY,
    RUNTIME_COMPONENTS_HEALTHY,
    VIRTUAL_COMPONENTS_HEALTHY,
    VIRTUAL_GARDEN_API_SERVER_AVAILABLE,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.api.schema.read import Malformed
from pergola.garden.components.managed_resources import Expected, expected
from pergola.garden.components.service_mesh.permissions import NAMESPACE as ISTIO_SYSTEM
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.etcd_objects import ETCD
from pergola.kube.selectors import format_selector
from pergola.operator.care.check import Observed, SeenPart, SeenResource, Unable, Verdict
from pergola.operator.care.extras import EXTRAS, Extras
from pergola.operator.care.servers import (
    CHECKED_BY,
    PROMETHEUS,
    Probe,
    Probing,
    Query,
    check_prometheuses,
    pods_of,
)
from pergola.operator.copies import Copies
from pergola.operator.oldest import oldest
from pergola.runtime.caching.cache import Cache
from pergola.runtime.caching.view import View
from pergola.runtime.clock import Clock, monotonic
from pergola.runtime.logging import get_logger
from pergola.runtime.task_group import TaskGroup

log = get_logger("garden-care")

T = TypeVar("T")

_GATE: Final = "PrometheusHealthChecks"
_LONGEST_PERIOD: Final = timedelta(minutes=3)
_CONTROL_PLANE: Final = format_selector({"matchLabels": {"gardener.cloud/role": "controlplane"}})
_CHECKED: Final = format_selector({"matchLabels": CHECKED_BY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of care, from the operator's configuration (spec 21 §1.2).

    Attributes:
        sync_period: The time between two runs without an event, and the time limit of a run.
        thresholds: How long each condition type may be `Progressing`.
        queries_prometheus: Whether to query each Prometheus.
        counts_once: Whether a ManagedResource of the virtual cluster that names a condition counts
            only for that one, and not for the virtual components.
    """

    sync_period: timedelta = timedelta(minutes=1)
    thresholds: Mapping[str, timedelta] = field(default_factory=dict)
    queries_prometheus: bool = False
    counts_once: bool = False

    @classmethod
    def of(cls, config: OperatorConfiguration) -> Self:
        """Return the settings in a configuration file."""
        care = config.controllers.garden_care
        return cls(
            sync_period=care.sync_period,
            thresholds={each.type: each.duration for each in care.condition_thresholds},
            queries_prometheus=feature_gates_of(config.feature_gates)[_GATE],
            counts_once=care.count_labelled_resources_once,
        )

    @property
    def patience(self) -> float:
        """The seconds until a check without a result counts as failed."""
        return min(self.sync_period, _LONGEST_PERIOD).total_seconds() / 2


class Observer:
    """Gathers the observations of a run.

    Attributes:
        prometheuses: A cache of the only kind that is not read elsewhere, so care runs it.
    """

    def __init__(
        self,
        copies: Copies,
        probe: Probing,
        template: Callable[[Garden], Landscape],
        settings: Settings,
        query: Query,
        clock: Clock,
    ) -> None:
        resources = (copies.of(MANAGED_RESOURCE, each) for each in (NAMESPACE, ISTIO_SYSTEM))
        etcds, deployments = copies.of(ETCD, NAMESPACE), copies.of(DEPLOYMENT, NAMESPACE)
        self.gardens = View(copies.of(GARDEN), _without_managed_fields)
        self.resources = tuple(View(each, SeenResource.of) for each in resources)
        self.etcds = View(etcds, SeenPart.of_etcd, labels=_CONTROL_PLANE)
        self.deployments = View(deployments, SeenPart.of_deployment, labels=_CONTROL_PLANE)
        self.prometheuses = Cache(
            copies.client, PROMETHEUS, pods_of, namespace=NAMESPACE, labels=_CHECKED
        )
        self._probe = probe
        self._template = template
        self._settings = settings
        self._query = query
        self._extras = Extras(copies.client, clock)

    def oldest(self) -> Key | None:
        """Return the Garden of the cluster: the oldest, if there are several."""
        found = oldest(garden for _, garden in self.gardens.items())
        return Key.of(found) if found else None

    async def observe(self, garden: JsonObject) -> Observed:
        """Return the present state, within `Settings.patience`."""
        timed = Timed()
        async with TaskGroup() as group:
            probe = group.create_task(timed(self._health(), VIRTUAL_GARDEN_API_SERVER_AVAILABLE))
            prometheus = group.create_task(
                timed(self._prometheus(), OBSERVABILITY_COMPONENTS_HEALTHY)
            )
            extras = group.create_task(timed(self._extras.observe(garden), *EXTRAS))
            unsynced = [
                group.create_task(timed(self._unsynced(*caches), condition))
                for caches, condition in (
                    (self.resources, RUNTIME_COMPONENTS_HEALTHY),
                    ((self.etcds,), VIRTUAL_COMPONENTS_HEALTHY),
                    ((self.deployments,), VIRTUAL_COMPONENTS_HEALTHY),
                )
            ]
        resources, etcds, deployments = (task.result() for task in unsynced)
        return Observed(
            resources=resources or {k: seen for each in self.resources for k, seen in each.items()},
            expected=self._expected(garden),
            etcds=etcds or {key.name: seen.problem for key, seen in self.etcds.items()},
            deployments=deployments
            or {key.name: seen.problem for key, seen in self.deployments.items()},
            probe=probe.result(),
            prometheus=prometheus.result(),
            extras=extras.result(),
            once=self._settings.counts_once,
            seconds=timed.seconds,
        )

    def _expected(self, garden: JsonObject) -> Sequence[Expected]:
        """Return the ManagedResources that must exist; a Garden under deletion needs none."""
        if deletion_timestamp_of(garden):
            return ()
        try:
            return expected(self._template(garden_from(garden)))
        except Malformed as error:
            log.error("cannot tell which ManagedResources a Garden needs", error=str(error))
            return ()

    async def _health(self) -> Probe | None:
        limit = self._settings.patience
        try:
            async with asyncio.timeout(limit):
                return await self._probe()
        except TimeoutError:
            return Probe(0, f"no answer within {limit:g} seconds", limit)

    async def _prometheus(self) -> Verdict:
        if not self._settings.queries_prometheus:
            return None
        unable = await self._unsynced(self.prometheuses)
        return unable or await check_prometheuses(self.prometheuses.items(), self._query)

    async def _unsynced(self, *caches: Cache[Any] | View[Any]) -> Unable | None:
        """Return why a cache cannot be read, or None, after waiting for its first list."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.patience):
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
        took = monotonic() - start
        for condition in conditions:
            self.seconds[condition] = max(took, self.seconds.get(condition, 0.0))
        return result


def _plural(kind: str) -> str:
    return f"{kind}es" if kind.endswith("s") else f"{kind}s"


def _without_managed_fields(garden: JsonObject) -> JsonObject:
    kept = {name: value for name, value in metadata_of(garden).items() if name != "managedFields"}
    return {**garden, "metadata": kept}
