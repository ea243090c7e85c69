"""Identification of existing subnets (spec 30 §3.2)."""

from pergola.api.objects import JsonObject
from pergola.providers.aws import state as keys
from pergola.providers.aws.resources import tags
from pergola.providers.aws.resources.kinds import SUBNET
from pergola.providers.aws.resources.ours import Ours, in_vpc
from pergola.providers.aws.resources.removal import is_ours
from pergola.providers.aws.resources.step import Work
from pergola.providers.aws.resources.subnets.desired import PREFIXES, ROLES, Subnet


def of_zone(zone: str) -> list[Ours]:
    """Return all subnets that a zone may have."""

    def is_there(work: Work, thing: JsonObject) -> bool:
        return in_vpc(work, thing) and thing.get("AvailabilityZone") == zone

    return [
        Ours(
            kind=SUBNET,
            key=keys.zone_key(zone, role),
            suffix=prefix,
            zone=zone,
            accept=is_there,
        )
        for role, prefix in zip(ROLES, PREFIXES, strict=True)
    ]


def one(subnet: Subnet) -> Ours:
    """Return one subnet as it is desired."""
    return Ours(
        kind=SUBNET,
        key=subnet.key,
        suffix=subnet.prefix,
        zone=subnet.zone,
        more=subnet.tags,
        accept=lambda work, thing: _is(work, subnet, thing),
    )


def known_subnet(work: Work, subnet: Subnet) -> str | None:
    """Return the id of an existing subnet: by the state, else by name, zone and range.

    Raises:
        ExtensionError: several have the tags of one without IPv4.
    """
    ours, name = one(subnet), work.state.get(subnet.key)
    accepted = {id_: each for id_, each in ours.all(work).items() if ours.accept(work, each)}
    if name in accepted:
        return name
    if subnet.native:
        return tags.only_one(work, accepted, ours.tags(work))
    names = (ours.name(work),)
    return next((id_ for id_, each in accepted.items() if is_ours(work, each, names)), None)


def _is(work: Work, subnet: Subnet, thing: JsonObject) -> bool:
    if not in_vpc(work, thing) or thing.get("AvailabilityZone") != subnet.zone:
        return False
    native = bool(thing.get("Ipv6Native"))
    return native if subnet.native else not native and thing.get("CidrBlock") == subnet.cidr
