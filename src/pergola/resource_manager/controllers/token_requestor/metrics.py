"""Metrics of tokens: seconds until they expire, and failed renewals."""

from typing import Final
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge

from pergola.api.objects import Key
from pergola.resource_manager.controllers.token_requestor.token import TokenFacts
from pergola.runtime.clock import Clock
from pergola.runtime.metrics import Metrics

_LABELS: Final = ("namespace", "name")


class _Families:
    """The metric families of a registry, reused after the process regains leadership."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.expiry = Gauge(
            "pergola_token_requestor_seconds_until_expiry",
            "Seconds until the token of a Secret expires; negative once it has",
            _LABELS,
            registry=registry,
        )
        self.failures = Counter(
            "pergola_token_requestor_failed_renewals_total",
            "Renewals of the token of a Secret that failed and are retried",
            _LABELS,
            registry=registry,
        )


_OF: Final[WeakKeyDictionary[CollectorRegistry, _Families]] = WeakKeyDictionary()


class TokenMetrics:
    """The series of all Secrets."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._clock = clock
        families = _OF.get(metrics.registry)
        if families is None:
            families = _OF[metrics.registry] = _Families(metrics.registry)
        self._families = families
        self._exposed: set[Key] = set()

    def expose(self, key: Key, token: TokenFacts) -> None:
        """Expose the current token of a Secret."""
        expires = token.expires
        if expires is None:
            return

        def remaining() -> float:
            return (expires - self._clock.now()).total_seconds()

        self._exposed.add(key)
        self._families.expiry.labels(*key).set_function(remaining)

    def failed(self, key: Key) -> None:
        """Count a failed renewal."""
        self._exposed.add(key)
        self._families.failures.labels(*key).inc()

    def forget(self, key: Key) -> None:
        """Remove the series of a deleted Secret."""
        if key in self._exposed:
            self._exposed.discard(key)
            self._families.expiry.remove(*key)
            self._families.failures.remove(*key)
