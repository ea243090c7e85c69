"""Metrics of rotations: the ages of the credentials and of the phases."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1 import garden_from
from pergola.api.schema.read import Malformed
from pergola.operator.oldest import oldest
from pergola.operator.rotation.ages import ages, is_managed
from pergola.operator.rotation.phases import phases_since
from pergola.runtime.caching.cache import Cache
from pergola.runtime.caching.packed import Packed
from pergola.runtime.clock import Clock, SystemClock


class CredentialAges(Collector):
    """The ages at the time of the scrape.

    Attributes:
        clock: The clock for the ages.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.clock: Clock = SystemClock()
        self._secrets: Cache[Packed] | None = None
        registry.register(self)

    def follow(self, secrets: Cache[Packed]) -> None:
        """Report the ages of these Secrets from now on."""
        self._secrets = secrets

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metric."""
        family = GaugeMetricFamily(
            "pergola_garden_credential_age_seconds",
            "Age of a credential of the Garden that is rotated at a user's request",
            labels=["credential"],
        )
        found = self._secrets.items() if self._secrets is not None else ()
        labels = [secret.labels for _, secret in found if is_managed(secret.labels)]
        for name, age in ages(labels, self.clock.now()):
            family.add_metric([name], age.total_seconds())
        yield family


class RotationPhases(Collector):
    """The phases of a Garden's rotations at the time of the scrape.

    Attributes:
        clock: The clock for the ages.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.clock: Clock = SystemClock()
        self._gardens: Cache[Packed] | None = None
        registry.register(self)

    def follow(self, gardens: Cache[Packed]) -> None:
        """Report the phases in the status of the oldest of these Gardens from now on."""
        self._gardens = gardens

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metric."""
        family = GaugeMetricFamily(
            "pergola_garden_rotation_phase_age_seconds",
            "Time since a rotation of credentials of the Garden entered its phase",
            labels=["rotation", "phase"],
        )
        found = self._gardens.items() if self._gardens is not None else ()
        garden = oldest(packed.unpack() for _, packed in found)
        with suppress(Malformed):  # its reconciliation reports that
            for name, (phase, since) in _phases(garden).items():
                family.add_metric([name, phase], (self.clock.now() - since).total_seconds())
        yield family


def _phases(garden: JsonObject | None) -> Mapping[str, tuple[str, datetime]]:
    return phases_since(garden_from(garden)) if garden is not None else {}
