"""The metric of conditions: a series for each one that fails, and a number for all others.

An alert on the series stays on while an object stays broken, however seldom it is retried. Ten
thousand objects in order have no series.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from pergola.api.objects import Key, maps_at
from pergola.health.conditions import desired_status
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.packed import Packed


class _Reported(NamedTuple):
    """The conditions of an object."""

    total: int
    failing: tuple[str, ...]


class ConditionMetrics(Collector):
    """The conditions of all objects in the caches that it follows."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._failing: dict[tuple[str, Key], tuple[str, ...]] = {}
        self._totals: Counter[str] = Counter()
        registry.register(self)

    def follow(self, cache: Cache[Packed]) -> None:
        """Include the objects in a cache from now on."""
        cache.subscribe(partial(self._observe, cache.gvk.kind))

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics."""
        failing = GaugeMetricFamily(
            "pergola_condition_failing",
            "A condition of an object that is not as it should be",
            labels=["kind", "namespace", "name", "condition"],
        )
        for (kind, key), conditions in self._failing.items():
            for condition in conditions:
                failing.add_metric([kind, key.namespace, key.name, condition], 1)
        yield failing
        total = GaugeMetricFamily(
            "pergola_conditions", "Number of conditions of all objects of a kind", labels=["kind"]
        )
        for kind, number in self._totals.items():
            total.add_metric([kind], number)
        yield total

    def _observe(self, kind: str, change: Change[Packed]) -> None:
        before, now = _reported(change.old), _reported(change.new)
        self._totals[kind] += now.total - before.total
        if now.failing:
            self._failing[kind, change.key] = now.failing
        else:
            self._failing.pop((kind, change.key), None)


def _reported(stored: Packed | None) -> _Reported:
    if stored is None:
        return _Reported(0, ())
    conditions = maps_at(stored.unpack(), "status", "conditions")
    kinds = [(str(each.get("type") or ""), each.get("status")) for each in conditions]
    failing = (kind for kind, status in kinds if desired_status(kind) not in (None, status))
    return _Reported(len(kinds), tuple(dict.fromkeys(failing)))
