"""Settings of the care reconciler, from the operator's configuration (spec 21 §1.2)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Self

from pergola.api.operator_config import OperatorConfiguration
from pergola.api.operator_config.feature_gates import feature_gates_of

PROMETHEUS_GATE: Final = "PrometheusHealthChecks"
_LONGEST_PERIOD: Final = timedelta(minutes=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the care reconciler.

    Attributes:
        sync_period: The time between two runs without an event, and the time limit of a run.
        thresholds: How long each condition type may be `Progressing`.
        queries_prometheus: Whether to query each Prometheus.
        counts_once: Whether a ManagedResource of the virtual cluster that names a condition counts
            only for that one, and not for the virtual components.
    """

    sync_period: timedelta = timedelta(minutes=1)
    thresholds: Mapping[str, timedelta] = field(default_factory=dict)
    queries_prometheus: bool = False
    counts_once: bool = False

    @classmethod
    def of(cls, config: OperatorConfiguration) -> Self:
        """Return the settings in a configuration file."""
        care = config.controllers.garden_care
        return cls(
            sync_period=care.sync_period,
            thresholds={each.type: each.duration for each in care.condition_thresholds},
            queries_prometheus=feature_gates_of(config.feature_gates)[PROMETHEUS_GATE],
            counts_once=care.count_labelled_resources_once,
        )

    @property
    def patience(self) -> float:
        """The seconds until a check without a result counts as failed."""
        return min(self.sync_period, _LONGEST_PERIOD).total_seconds() / 2
