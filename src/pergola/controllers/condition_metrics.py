"""The metric of conditions: a series for each one that fails, and a number for all others.

An alert on the series stays on while an object stays broken, however seldom it is retried. Ten
thousand objects in order have no series.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at
from pergola.health.conditions import failing
from pergola.runtime.caching.cache import Change, Subscriber
from pergola.runtime.caching.packed import Packed

T = TypeVar("T")


class Reported(NamedTuple):
    """The number of conditions of an object, and the types of those that fail."""

    total: int
    failing: tuple[str, ...]


NOTHING: Final = Reported(0, ())
"""For an object without conditions, or one that another process reports."""


class Followed(Protocol[T]):
    """A cache, or several of one kind."""

    gvk: GroupVersionKind

    def subscribe(self, subscriber: Subscriber[T]) -> None:
        """Call `subscriber` for each change from now on, and at once for each known object."""
        ...


class ConditionMetrics(Collector):
    """The conditions of all objects in the caches that it follows."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._failing: dict[tuple[str, Key], tuple[str, ...]] = {}
        self._totals: Counter[str] = Counter()
        registry.register(self)

    def follow(self, cache: Followed[T], read: Callable[[T], Reported]) -> None:
        """Include the objects in a cache from now on.

        Args:
            read: returns the conditions of what the cache keeps of an object.
        """
        kind = cache.gvk.kind

        def observe(change: Change[T]) -> None:
            before, now = (
                NOTHING if seen is None else read(seen) for seen in (change.old, change.new)
            )
            self._observe(kind, change.key, before, now)

        cache.subscribe(observe)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics."""
        found = GaugeMetricFamily(
            "pergola_condition_failing",
            "A condition of an object that is not as it should be",
            labels=["kind", "namespace", "name", "condition"],
        )
        for (kind, key), conditions in self._failing.items():
            for condition in conditions:
                found.add_metric([kind, key.namespace, key.name, condition], 1)
        yield found
        total = GaugeMetricFamily(
            "pergola_conditions", "Number of conditions of all objects of a kind", labels=["kind"]
        )
        for kind, number in self._totals.items():
            total.add_metric([kind], number)
        yield total

    def _observe(self, kind: str, key: Key, before: Reported, now: Reported) -> None:
        self._totals[kind] += now.total - before.total
        if now.failing:
            self._failing[kind, key] = now.failing
        else:
            self._failing.pop((kind, key), None)


def reported(obj: JsonObject) -> Reported:
    """Return the conditions in the status of an object."""
    kinds = dict.fromkeys(str(each.get("type") or "") for each in failing(obj))
    return Reported(len(maps_at(obj, "status", "conditions")), tuple(kinds))


def of_packed(stored: Packed) -> Reported:
    """Return the conditions of a packed object."""
    return reported(stored.unpack())
