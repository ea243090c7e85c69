"""When care runs, and the steps of a run (spec 21 §3.1, §3.2)."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from pergola.api.objects import JsonObject, Key, map_at, maps_at, resource_version_of
from pergola.api.operator_v1alpha1 import GARDEN, Garden
from pergola.garden.landscape import Landscape
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.patches import same
from pergola.operator.care.check import SeenPart, SeenResource, check
from pergola.operator.care.conditions import conditions_of, reasons_of
from pergola.operator.care.metrics import CareMetrics
from pergola.operator.care.observe import Observer, Settings
from pergola.operator.care.servers import Probing, Query, query_prometheus
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
    probe: Probing,
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
        probe: Requests the health endpoint of the virtual cluster's API server.
        template: Returns the landscape of a Garden, without the parts that are read from clusters.
        query: Sends a query to a Prometheus.
    """
    clock = clock or SystemClock()
    observer = Observer(copies, probe, template, settings, query, clock)
    measured = metrics.register(CareMetrics)
    period = settings.sync_period.total_seconds()

    async def reconcile(key: Key) -> Outcome:
        """Check the Garden, and write the conditions that changed."""
        garden = observer.gardens.get(key)
        if garden is None or key != observer.oldest():
            return DONE
        observed = await observer.observe(garden)
        measured.observe(observed)
        garden = observer.gardens.get(key) or garden  # checks may have taken a while
        verdicts = check(observed, reasons_of(garden))
        conditions = conditions_of(garden, verdicts, settings.thresholds, clock.now())
        await _patch(copies.client, garden, conditions)
        return Again(period)

    controller: Workers[Key] = Workers(
        NAME, reconcile, workers=1, metrics=metrics, deadline=period, last_retry=period
    )
    for watch in _triggers(observer):
        watch.trigger(controller.queue)
    own = [observer.prometheuses] if settings.queries_prometheus else []
    return Unit(NAME, beside=own, controllers=[controller])


async def _patch(client: Client, garden: JsonObject, conditions: Sequence[JsonObject]) -> None:
    """Write the conditions of the Garden that was checked, if they differ.

    A merge patch replaces the whole list. The resourceVersion prevents it from undoing concurrent
    changes by another writer.

    Raises:
        Conflict: The Garden has changed since it was checked.
        KubeError: The API server refused, or did not answer.
    """
    if same([*conditions], [*maps_at(garden, "status", "conditions")]):
        return
    patch = {
        "metadata": {"resourceVersion": resource_version_of(garden)},
        "status": {"conditions": [*conditions]},
    }
    try:
        await client.patch(GARDEN, Key.of(garden), patch, subresource="status")
    except NotFound:
        return


def _triggers(observer: Observer) -> Iterable[Watch[Any, Key]]:
    """Yield the triggers; changes during a reconciliation of the Garden are none."""

    def at_rest(_: object) -> Iterable[Key]:
        oldest = observer.oldest()
        garden = observer.gardens.get(oldest) if oldest else None
        return () if oldest is None or garden is None or _is_processing(garden) else (oldest,)

    yield Watch(observer.gardens, when=_is_new_or_succeeded)
    for resources in observer.resources:
        yield Watch(resources, to=at_rest, when=_is_signalled)
    for parts in (observer.etcds, observer.deployments):
        yield Watch(parts, to=at_rest, when=_is_signalled)


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
