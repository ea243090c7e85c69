"""Identification of existing subnets (spec 30 §3.2)."""

from pergola.api.objects import JsonObject
from pergola.providers.aws.resources import tags
from pergola.providers.aws.resources.adoption import in_vpc
from pergola.providers.aws.resources.kinds import SUBNET
from pergola.providers.aws.resources.removal import is_ours
from pergola.providers.aws.resources.step import Work
from pergola.providers.aws.resources.subnets.desired import PREFIXES, Subnet
from pergola.providers.aws.resources.zone_suffixes import zone_suffix


def names_in(work: Work, zone: str) -> set[str]:
    """Return the names that the cluster gives to subnets of a zone."""
    suffix = zone_suffix(work, zone)
    return {work.desired.name(f"{prefix}-{suffix}") for prefix in PREFIXES}


def known_subnet(work: Work, subnet: Subnet) -> str | None:
    """Return the id of an existing subnet: by the state, else by name, zone and range.

    Raises:
        ExtensionError: several have the tags of one without IPv4.
    """
    name = work.state.get(subnet.key)
    thing = SUBNET.one(work.snapshot, name)
    if thing is not None and _is(work, subnet, thing):
        return name
    suffix = subnet.suffix(zone_suffix(work, subnet.zone))
    ours = (work.desired.name(suffix),)
    accepted = {
        name: thing
        for name, thing in work.snapshot.subnets.items()
        if is_ours(work, thing, ours) and _is(work, subnet, thing)
    }
    if not subnet.native:
        return next(iter(accepted), None)
    return tags.only_one(work, accepted, suffix, **subnet.tags)


def _is(work: Work, subnet: Subnet, thing: JsonObject) -> bool:
    if not in_vpc(work)(thing) or thing.get("AvailabilityZone") != subnet.zone:
        return False
    native = bool(thing.get("Ipv6Native"))
    return native if subnet.native else not native and thing.get("CidrBlock") == subnet.cidr
