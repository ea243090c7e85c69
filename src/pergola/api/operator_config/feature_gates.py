"""Feature gates of the operator (spec 20 §3)."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class FeatureGate(NamedTuple):
    """A feature gate.

    Attributes:
        default: Whether the feature is enabled by default.
        is_locked: Whether the configuration cannot change this.
    """

    default: bool
    is_locked: bool = False


FEATURE_GATES: Final = {
    "BackupEntryForGarden": FeatureGate(default=True),
    "DefaultSeccompProfile": FeatureGate(default=False),
    "DisableNginxIngressInGarden": FeatureGate(default=True),
    "DoNotCopyBackupCredentials": FeatureGate(default=True, is_locked=True),
    "HVPA": FeatureGate(default=False),
    "IstioTLSTermination": FeatureGate(default=True),
    "OpenTelemetryCollector": FeatureGate(default=True),
    "PrometheusHealthChecks": FeatureGate(default=False),
    "RemoveVali": FeatureGate(default=False),
    "VictoriaLogsBackend": FeatureGate(default=False),
}


def feature_gates_of(configured: Mapping[str, bool]) -> dict[str, bool]:
    """Return all feature gates of the operator, with the configured values or the defaults."""
    return {name: gate.default for name, gate in FEATURE_GATES.items()} | dict(configured)
