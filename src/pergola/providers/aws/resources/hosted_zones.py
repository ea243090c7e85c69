"""Hosted zones of Route 53, which contain DNS records."""

from collections.abc import Iterable
from typing import NamedTuple

from pergola.api.objects import JsonObject, map_at
from pergola.cloud.aws import AwsClient
from pergola.extension_api.errors import configuration_problem
from pergola.providers.aws.resources.record_sets import normal_name


class HostedZone(NamedTuple):
    """A hosted zone; a private one answers only in certain VPCs."""

    id: str
    name: str
    is_private: bool


def zone_id(text: str) -> str:
    """Return the id of a hosted zone, which AWS also writes as `/hostedzone/<id>`."""
    return text.rpartition("/")[2]


async def observe_hosted_zones(aws: AwsClient) -> list[HostedZone]:
    """Return all hosted zones of the account.

    Raises:
        CloudError: AWS refused.
    """
    return [
        _observed(each) for each in await aws.pages("route53", "ListHostedZones", "HostedZones")
    ]


def zone_for(name: str, zones: Iterable[HostedZone]) -> str:
    """Return the id of the zone for a name: the one with the longest matching name.

    Private zones count only if no public one matches.

    Raises:
        ExtensionError: none matches, or several with the same name do.
    """
    matching = [zone for zone in zones if _is_below(normal_name(name), zone.name)]
    candidates = [zone for zone in matching if not zone.is_private] or matching
    if not candidates:
        raise configuration_problem(
            f"could not find DNS hosted zone for name {name}: create one in the account of the "
            "credentials, or set spec.zone"
        )
    longest = max(len(zone.name) for zone in candidates)
    best = sorted(zone.id for zone in candidates if len(zone.name) == longest)
    if len(best) > 1:
        raise configuration_problem(
            f"{len(best)} DNS hosted zones match the name {name} equally ({', '.join(best)}): set "
            "spec.zone to the one to use"
        )
    return best[0]


def _is_below(name: str, zone: str) -> bool:
    return name == zone or name.endswith(f".{zone}")


def _observed(answer: JsonObject) -> HostedZone:
    return HostedZone(
        zone_id(str(answer["Id"])),
        normal_name(str(answer["Name"])),
        map_at(answer, "Config").get("PrivateZone") is True,
    )
