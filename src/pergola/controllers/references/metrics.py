"""The metric of protected objects."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from pergola.controllers.references.named import NamedObjects


class ProtectedObjects(Collector):
    """The number of objects with the finalizer, by kind, at the time of the scrape."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._objects: NamedObjects | None = None
        registry.register(self)

    def follow(self, objects: NamedObjects) -> None:
        """Include these objects from now on."""
        self._objects = objects

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metric."""
        family = GaugeMetricFamily(
            "pergola_protected_objects",
            "Number of objects that cannot be deleted because another object names them",
            labels=["kind"],
        )
        if self._objects is not None:
            found = Counter(kind for kind, _ in self._objects.protected())
            for kind in self._objects.kinds:
                family.add_metric([kind], found[kind])
        yield family
