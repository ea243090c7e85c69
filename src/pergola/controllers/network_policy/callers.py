"""Pods that are labelled as callers, unless the configuration ignores them."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from pergola.api.objects import Key
from pergola.controllers.network_policy.intents import own_labels, peer_labels
from pergola.controllers.network_policy.service import ServiceView
from pergola.runtime.caching.cache import Change
from pergola.runtime.caching.caches import Caches
from pergola.runtime.caching.index import Index
from pergola.runtime.clock import monotonic

ANYWHERE = ""
"""The namespace of callers elsewhere, whose labels name the Service's namespace."""


class Place(NamedTuple):
    """A label key of callers in a namespace."""

    namespace: str
    label: str


class Callers:
    """Lookups of namespaces by the caller labels of their pods, and of Services by these labels.

    The last pod with a label counts for a while after it disappeared: if it is replaced, as in a
    StatefulSet, its replacement finds the policies, and nothing is written.

    Args:
        pods: the label keys of each pod that allow it to call Services.
        grace: the length of that while in seconds.
        now: returns seconds on a clock that never goes back.
    """

    def __init__(
        self,
        pods: Caches[frozenset[str]],
        services: Caches[ServiceView],
        grace: float,
        *,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._grace = grace
        self._now = now
        self._left: dict[Place, float] = {}  # when a pod disappeared, oldest first
        self.pods = pods
        self.by_label: Index[frozenset[str], Place] = Index(
            self.pods, lambda key, labels: [Place(key.namespace, label) for label in labels]
        )
        self.services: Index[ServiceView, Place] = Index(services, _caller_labels)
        self.pods.subscribe(self._pod_changed)

    def has(self, namespace: str, label: str) -> bool:
        """Return whether a pod of the namespace has the label key, or had it a moment ago.

        The pods of a namespace that is not watched are unknown, and may have any label.
        """
        place = Place(namespace, label)
        return (
            place in self.by_label
            or self.remaining(place) is not None
            or not self.pods.covers(namespace)
        )

    def remaining(self, place: Place) -> float | None:
        """Return for how many seconds a pod that disappeared still counts; None if it does not."""
        if place not in self._left or place in self.by_label:
            return None
        seconds = self._left[place] + self._grace - self._now()
        return seconds if seconds > 0 else None

    def _pod_changed(self, change: Change[frozenset[str]]) -> None:
        nothing: frozenset[str] = frozenset()
        for label in (change.old or nothing) - (change.new or nothing):
            place = Place(change.key.namespace, label)
            self._left.pop(place, None)
            self._left[place] = self._now()
            self._forget()

    def _forget(self) -> None:
        """Drop the entries that no longer count."""
        while (oldest := next(iter(self._left), None)) and self.remaining(oldest) is None:
            del self._left[oldest]


def _caller_labels(key: Key, service: ServiceView) -> Iterable[Place]:
    yield from (Place(key.namespace, label.key) for label in own_labels(service))
    if service.namespace_selectors:
        yield from (Place(ANYWHERE, label.key) for label in peer_labels(service))
