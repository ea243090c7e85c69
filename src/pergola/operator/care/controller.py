"""When care runs, and the steps of a run (spec 21 §3.1, §3.2)."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from pergola.api.objects import JsonObject, Key, map_at
from pergola.api.operator_v1alpha1 import Garden
from pergola.garden.landscape import Landscape
from pergola.kube.client import Client
from pergola.operator.care.api_server import HealthEndpoint
from pergola.operator.care.apply import patch_conditions
from pergola.operator.care.check import Observed, check
from pergola.operator.care.components import SeenResource
from pergola.operator.care.conditions import conditions_of, reasons_of
from pergola.operator.care.extras import Extras
from pergola.operator.care.metrics import CareMetrics
from pergola.operator.care.observe import Observer
from pergola.operator.care.prometheus import Query, query_prometheus
from pergola.operator.care.settings import Settings
from pergola.operator.care.watches import SeenPart, Watches
from pergola.operator.copies import Copies
from pergola.runtime.caching.cache import Change
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.controller import DONE, Again, Outcome, Workers
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics

NAME: Final = "garden-care"
_PROCESSING: Final = "Processing"
_SUCCEEDED: Final = "Succeeded"
_DELETE: Final = "Delete"


def garden_care(
    copies: Copies,
    virtual: HealthEndpoint,
    template: Callable[[Garden], Landscape],
    settings: Settings,
    *,
    metrics: Metrics,
    clock: Clock | None = None,
    query: Query = query_prometheus,
) -> Unit:
    """Return the controller `garden-care`; for the leader.

    Args:
        copies: Of the runtime cluster.
        template: Returns the landscape of a Garden, without the parts that are read from clusters.
        query: Sends a query to a Prometheus.
    """
    clock = clock or SystemClock()
    watches = Watches.of(copies)
    extras = Extras(copies.client, clock)
    observer = Observer(watches, virtual, template, settings, query, extras)
    care = GardenCare(copies.client, observer, metrics.register(CareMetrics), clock)
    period = settings.sync_period.total_seconds()
    controller: Workers[Key] = Workers(
        NAME, care.reconcile, workers=1, metrics=metrics, deadline=period, last_retry=period
    )
    for watch in _triggers(watches):
        watch.trigger(controller.queue)
    own = [watches.prometheuses] if settings.queries_prometheus else []
    return Unit(NAME, beside=own, controllers=[controller])


class GardenCare:
    """The reconciler of a Garden's conditions."""

    def __init__(
        self, client: Client, observer: Observer, metrics: CareMetrics, clock: Clock
    ) -> None:
        self._client = client
        self._observer = observer
        self._metrics = metrics
        self._clock = clock

    async def reconcile(self, key: Key) -> Outcome:
        """Check the Garden, and write the conditions that changed."""
        gardens = self._observer.watches.gardens
        garden = gardens.get(key)
        if garden is None or key != self._observer.watches.oldest():
            return DONE
        observed = await self._observer.observe(garden)
        self._metrics.observe(observed)
        await self._report(gardens.get(key) or garden, observed)
        return Again(self._observer.settings.sync_period.total_seconds())

    async def _report(self, garden: JsonObject, observed: Observed) -> None:
        """Write conditions to the current Garden: checks may have taken a while."""
        verdicts = check(observed, reasons_of(garden))
        thresholds = self._observer.settings.thresholds
        conditions = conditions_of(garden, verdicts, thresholds, self._clock.now())
        await patch_conditions(self._client, garden, conditions)


def _triggers(watches: Watches) -> Iterable[Watch[Any, Key]]:
    """Yield the triggers; changes during a reconciliation of the Garden are none."""

    def at_rest(_: object) -> Iterable[Key]:
        oldest = watches.oldest()
        garden = watches.gardens.get(oldest) if oldest else None
        return () if oldest is None or garden is None or _is_processing(garden) else (oldest,)

    yield Watch(watches.gardens, when=_is_new_or_succeeded)
    for resources in watches.resources:
        yield Watch(resources, to=at_rest, when=_is_signalled)
    yield Watch(watches.etcds, to=at_rest, when=_is_signalled)
    yield Watch(watches.deployments, to=at_rest, when=_is_signalled)


def _is_new_or_succeeded(change: Change[JsonObject]) -> bool:
    """Return whether a Garden appeared, or its reconciliation has just succeeded."""
    if change.new is None:
        return False
    if change.old is None:
        return True
    before, after = (map_at(obj, "status", "lastOperation") for obj in (change.old, change.new))
    return (
        _is_processing(change.old)
        and after.get("state") == _SUCCEEDED
        and _DELETE not in (before.get("type"), after.get("type"))
    )


def _is_signalled(change: Change[SeenResource] | Change[SeenPart]) -> bool:
    """Return whether an object appeared, disappeared, or changed its reported state."""
    if change.initial:
        return False  # the first run waits for all of them
    if change.old is None or change.new is None:
        return True
    return change.old.signal != change.new.signal


def _is_processing(garden: JsonObject) -> bool:
    return map_at(garden, "status", "lastOperation").get("state") == _PROCESSING
