"""The metrics of several processes of one program, summed."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

_OF_ONE_PROCESS: Final = frozenset(
    ("process_max_fds", "process_open_fds", "process_start_time_seconds", "python_info")
)
"""Gauges that cannot be summed meaningfully."""
_TOTALS: Final = ("counter", "histogram")
_Labels = tuple[tuple[str, str], ...]


class Family(NamedTuple):
    """A metric of a process, running or ended.

    Attributes:
        samples: the name, labels and value of each.
    """

    name: str
    type: str
    documentation: str
    samples: list[tuple[str, dict[str, str], float]]


def snapshot(registry: CollectorRegistry) -> list[Family]:
    """Return the metrics that a process adds to those of another."""
    return [
        Family(
            metric.name,
            metric.type,
            metric.documentation,
            [(sample.name, dict(sample.labels), sample.value) for sample in metric.samples],
        )
        for metric in registry.collect()
        if metric.name not in _OF_ONE_PROCESS
    ]


def totals(families: Iterable[Family]) -> list[Family]:
    """Return the part that outlives a process: totals must not decrease."""
    return [family for family in families if family.type in _TOTALS]


class Summed(Collector):
    """The metrics of a registry, summed with those of other processes."""

    def __init__(self, registry: CollectorRegistry, others: Sequence[Sequence[Family]]) -> None:
        self._registry = registry
        self._others = others

    def collect(self) -> Iterator[Metric]:
        """Yield each metric once."""
        added = _by_name(self._others)
        for metric in self._registry.collect():
            yield _sum(metric, added.pop(metric.name, []))
        for families in added.values():
            first = families[0]
            yield _sum(Metric(first.name, first.documentation, first.type), families)


def _by_name(others: Sequence[Sequence[Family]]) -> dict[str, list[Family]]:
    found: dict[str, list[Family]] = {}
    for families in others:
        for family in families:
            found.setdefault(family.name, []).append(family)
    return found


def _sum(metric: Metric, families: list[Family]) -> Metric:
    if not families:
        return metric
    values: dict[tuple[str, _Labels], float] = {}
    for sample in metric.samples:
        values[sample.name, tuple(sample.labels.items())] = sample.value
    for family in families:
        for name, labels, value in family.samples:
            key = name, tuple(labels.items())
            values[key] = values.get(key, 0.0) + value
    summed = Metric(metric.name, metric.documentation, metric.type)
    summed.samples = [Sample(name, dict(labels), value) for (name, labels), value in values.items()]
    return summed
