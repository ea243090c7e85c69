"""Settings of namespaces and objects, and the applicable rules (spec 12 §3.1, §18)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pergola.api import marks

PREFIX: Final = "high-availability-config.resources.gardener.cloud"
CONSIDER: Final = f"{PREFIX}/consider"
SKIP: Final = f"{PREFIX}/skip"
TYPE: Final = f"{PREFIX}/type"
REPLICAS: Final = f"{PREFIX}/replicas"
HOST_SPREAD: Final = f"{PREFIX}/host-spread"
FAILURE_TOLERANCE: Final = f"{PREFIX}/failure-tolerance-type"
ZONES: Final = f"{PREFIX}/zones"
ZONE_PINNING: Final = f"{PREFIX}/zone-pinning"

Version = tuple[int, int]
_EVEN_SPREADING: Final = (1, 26)
_MATCH_LABEL_KEYS: Final = (1, 27)


@dataclass(frozen=True, slots=True)
class Profile:
    """The applicable spreading rules.

    Attributes:
        widens_zone_skew: the workaround for clusters that spread incorrectly over zones (D1).
        is_modern: `minDomains` for hosts, `matchLabelKeys`, single nodes, `host-spread` (D4).
    """

    widens_zone_skew: bool
    is_modern: bool


SEED: Final = Profile(widens_zone_skew=True, is_modern=False)
TODAY: Final = Profile(widens_zone_skew=False, is_modern=True)


def profile_for(chosen: Literal["auto", "seed", "today"], version: Version | None) -> Profile:
    """Return the rules for a cluster's Kubernetes version; None if unknown."""
    if chosen != "auto":
        return SEED if chosen == "seed" else TODAY
    return Profile(
        widens_zone_skew=version is None or version < _EVEN_SPREADING,
        is_modern=version is not None and version >= _MATCH_LABEL_KEYS,
    )


@dataclass(frozen=True, slots=True)
class NamespaceSettings:
    """The settings of a namespace.

    Attributes:
        tolerance: the failure tolerance type; None if unset, which differs from empty.
        zones: the sorted zones, without duplicates.
        pins: pin pods to the zones even if `tolerance` is unset.
    """

    tolerance: str | None = None
    zones: tuple[str, ...] = ()
    pins: bool = False

    @property
    def pins_zones(self) -> bool:
        """Whether pods must be in one of the zones (§3.4)."""
        return bool(self.zones) and (self.tolerance is not None or self.pins)


def read_namespace(annotations: Mapping[str, str]) -> NamespaceSettings:
    """Return the settings in a namespace's annotations; invalid ones count as unset."""
    zones = {zone for zone in annotations.get(ZONES, "").split(",") if zone}
    return NamespaceSettings(
        annotations.get(FAILURE_TOLERANCE),
        tuple(sorted(zones)),
        marks.is_truthy(annotations.get(ZONE_PINNING)),
    )
