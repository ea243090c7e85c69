"""Feature gates of Kubernetes, by version."""

from functools import cache
from typing import Final, NamedTuple

from pergola.api.known.kubernetes_versions import Version, tabled
from pergola.api.known.version_ranges import Range, minor_of, range_of, rows

_OF_ALL: Final = ("AllAlpha", "AllBeta")


class FeatureGate(NamedTuple):
    """A feature gate.

    Attributes:
        versions: The versions that know it.
        locked: The versions in which it cannot be changed.
        locked_to: Its value in those versions.
    """

    versions: Range
    locked: Range | None = None
    locked_to: bool = False


def kubernetes_feature_gate(name: str) -> FeatureGate | None:
    """Return a feature gate, or None if no supported version knows it."""
    return _table().get(name)


def is_known(gate: FeatureGate, version: Version) -> bool:
    """Return whether a version knows a feature gate."""
    return tabled(version) in gate.versions


def locked_value(gate: FeatureGate, version: Version) -> bool | None:
    """Return the value to which a feature gate is locked in a version, or None if it is not."""
    if gate.locked is None or tabled(version) not in gate.locked:
        return None
    return gate.locked_to


@cache
def _table() -> dict[str, FeatureGate]:
    table = {name: FeatureGate(Range(None, None)) for name in _OF_ALL}
    for name, since, until, lock in rows("kubernetes_feature_gates.txt"):
        value, _, locked_since = lock.partition("@")
        locked = None if lock == "-" else Range(minor_of(locked_since), minor_of(until))
        table[name] = FeatureGate(range_of(since, until), locked, value == "true")
    return table
