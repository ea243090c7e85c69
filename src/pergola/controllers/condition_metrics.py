"""The metric of conditions: a series for each one that fails, and a number for all others.

An alert on the series stays on while an object stays broken, however seldom it is retried. Ten
thousand objects in order have no series.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from pergola.api.objects import GroupVersionKind, Key
from pergola.health.conditions import NOTHING, Reported, reported
from pergola.runtime.caching.cache import Change, Subscriber
from pergola.runtime.caching.packed import Packed

T = TypeVar("T")


class Followed(Protocol[T]):
    """A cache, or several of one kind."""

    gvk: GroupVersionKind

    def subscribe(self, subscriber: Subscriber[T]) -> None:
        """Call `subscriber` for each change from now on, and at once for each known object."""
        ...


class ConditionMetrics(Collector):
    """The conditions of all objects in the caches that it follows."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._sources: list[_Source] = []
        registry.register(self)

    def follow(self, cache: Followed[T], read: Callable[[T], Reported]) -> Callable[[], None]:
        """Include the objects in a cache from now on; return a function that leaves them out.

        Args:
            read: returns the conditions of what the cache keeps of an object.
        """
        source = _Source(cache.gvk.kind)

        def observe(change: Change[T]) -> None:
            before, now = (
                NOTHING if seen is None else read(seen) for seen in (change.old, change.new)
            )
            source.observe(change.key, before, now)

        self._sources.append(source)
        cache.subscribe(observe)
        return partial(self._sources.remove, source)

    async def following(self, cache: Followed[T], read: Callable[[T], Reported]) -> None:
        """Include the objects in a cache until cancelled; see `follow`."""
        leave = self.follow(cache, read)
        try:
            await asyncio.Event().wait()
        finally:
            leave()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics."""
        found = GaugeMetricFamily(
            "pergola_condition_failing",
            "A condition of an object that is not as it should be",
            labels=["kind", "namespace", "name", "condition"],
        )
        totals: Counter[str] = Counter()
        for source in self._sources:
            totals[source.kind] += source.total
            for key, conditions in source.failing.items():
                for condition in conditions:
                    found.add_metric([source.kind, key.namespace, key.name, condition], 1)
        yield found
        total = GaugeMetricFamily(
            "pergola_conditions", "Number of conditions of all objects of a kind", labels=["kind"]
        )
        for kind, number in totals.items():
            total.add_metric([kind], number)
        yield total


class _Source:
    """The conditions of the objects in one cache."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.failing: dict[Key, tuple[str, ...]] = {}
        self.total = 0

    def observe(self, key: Key, before: Reported, now: Reported) -> None:
        self.total += now.total - before.total
        if now.failing:
            self.failing[key] = now.failing
        else:
            self.failing.pop(key, None)


def of_packed(stored: Packed) -> Reported:
    """Return the conditions of a packed object."""
    return reported(stored.unpack())
