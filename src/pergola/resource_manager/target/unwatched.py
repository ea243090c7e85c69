"""The metric of kinds that cannot be watched."""

from collections.abc import Callable, Iterator

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from pergola.resource_manager.target.cluster import Target


class UnwatchedKinds(Collector):
    """A series for each kind that ManagedResources describe and that cannot be watched.

    Args:
        target: returns the current target; None before there is one.
    """

    def __init__(self, target: Callable[[], Target | None]) -> None:
        self._target = target

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the series, with the value 1."""
        family = GaugeMetricFamily(
            "pergola_kind_not_watched",
            "Kinds of managed objects that cannot be watched",
            labels=["kind"],
        )
        target = self._target()
        for gvk in target.unwatched_kinds() if target else ():
            family.add_metric([str(gvk)], 1.0)
        yield family
