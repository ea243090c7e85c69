"""Facts about a Shoot and its CloudProfile that a config must match."""

from dataclasses import dataclass

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.extension_api.cluster import Shoot
from pergola.providers.aws.cloud_profile_config import effective_spec


@dataclass(frozen=True, slots=True, kw_only=True)
class ShootFacts:
    """Facts that a config must match.

    Attributes:
        families: the Shoot's IP families.
        nodes, pods, services: its ranges as `networking` says them; empty if it does not.
        zones: the availability zones of the Shoot's region in the CloudProfile; None if unknown, in
            which case they are not checked.
    """

    families: tuple[str, ...] = ("IPv4",)
    nodes: str = ""
    pods: str = ""
    services: str = ""
    zones: tuple[str, ...] | None = None

    @property
    def has_ipv6(self) -> bool:
        """Whether the Shoot has IPv6."""
        return "IPv6" in self.families

    @property
    def has_only_ipv6(self) -> bool:
        """Whether nodes get no IPv4 address, so that their subnets have no IPv4 range."""
        return self.has_ipv6 and "IPv4" not in self.families


def facts_of(shoot: Shoot, cloud_profile: JsonObject | None = None) -> ShootFacts:
    """Return the facts of a Shoot; without a CloudProfile, zones are unknown."""
    return ShootFacts(
        families=tuple(shoot.ip_families) or ("IPv4",),
        nodes=shoot.node_range,
        pods=_range_of(shoot, "pods"),
        services=_range_of(shoot, "services"),
        zones=zones_of(cloud_profile, _region_of(shoot)) if cloud_profile else None,
    )


def zones_of(cloud_profile: JsonObject, region: str) -> tuple[str, ...] | None:
    """Return the availability zones of a region; None if the profile lacks the region."""
    for found in maps_at(effective_spec(cloud_profile), "regions"):
        if found.get("name") == region:
            return tuple(str(zone.get("name")) for zone in maps_at(found, "zones"))
    return None


def _region_of(shoot: Shoot) -> str:
    return str(map_at(shoot.raw, "spec").get("region") or "")


def _range_of(shoot: Shoot, of: str) -> str:
    value = map_at(shoot.raw, "spec", "networking").get(of)
    return value if isinstance(value, str) else ""
