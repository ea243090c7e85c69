"""Read user-provided subnets; refuse before anything is written (spec 30 §4.3, §8.4)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import Code, ExtensionError, SeveralErrors
from pergola.providers.aws import load_balancer_roles as load_balancers
from pergola.providers.aws import state as keys
from pergola.providers.aws.byo import records, tables, tagging
from pergola.providers.aws.config import Zone
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.load_balancer_roles import Role
from pergola.providers.aws.preflight import subnets as live
from pergola.providers.aws.preflight.vpc import ipv6_blocks
from pergola.providers.aws.resources import byo_step_names as names
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.zone_suffixes import zone_suffix
from pergola.providers.aws.snapshot import Snapshot

WORKERS_KEYS: Final = (
    keys.SUBNET_WORKERS,
    keys.SUBNET_WORKERS_CIDR,
    keys.SUBNET_WORKERS_IPV6_CIDR,
)
ROLE_KEYS: Final = {
    Role.PUBLIC: (keys.SUBNET_PUBLIC, keys.SUBNET_PUBLIC_CIDR, keys.SUBNET_PUBLIC_IPV6_CIDR),
    Role.INTERNAL: (
        keys.SUBNET_INTERNAL,
        keys.SUBNET_INTERNAL_CIDR,
        keys.SUBNET_INTERNAL_IPV6_CIDR,
    ),
}


def to_record(zone: str, at: tuple[str, str, str], subnet: JsonObject | None) -> dict[str, str]:
    """Return what the state gets about a zone's subnet: its id and its actual ranges.

    Args:
        at: the keys of its id, its IPv4 range and its IPv6 range.
        subnet: None if it was deleted.
    """
    values = ("", "", "")
    if subnet is not None:
        ipv6 = next(iter(ipv6_blocks(subnet)), "")
        values = (subnet["SubnetId"], str(subnet.get("CidrBlock") or ""), ipv6)
    return {keys.zone_key(zone, key): value for key, value in zip(at, values, strict=True)}


def problems(desired: Desired, snapshot: Snapshot) -> list[str]:
    """Return why the subnets cannot be used, one sentence each."""
    found = [f"{each} (to repair: {each.fix})" for each in live.check(desired, snapshot)]
    tagged = tagging.with_tags(desired, snapshot.subnets)
    return [*found, *load_balancers.ambiguities(desired, tagged)]


def _ids(zone: Zone) -> tuple[str | None, str | None, str | None]:
    return zone.workers_subnet_id, zone.public_subnet_id, zone.internal_subnet_id


def _decide(work: Work) -> Decision:
    wrong = problems(work.desired, work.snapshot)
    if wrong:
        errors = [ExtensionError(text, Code.CONFIGURATION_PROBLEM) for text in wrong]
        return Decision.refuse(errors[0] if len(errors) == 1 else SeveralErrors(errors))
    count = len({each.id for each in live.named(work.desired)})
    zones = work.desired.config.networks.zones
    return Decision.keep(f"{count} subnets in {len(zones)} zones", _to_record(work))


async def _observe(work: Work) -> None:
    """Describe subnets that were not visible once more: they may be very new."""
    unseen = sorted({each.id for each in live.named(work.desired)} - work.snapshot.subnets.keys())
    if unseen:
        filters = [{"Name": "subnet-id", "Values": unseen}]
        found = await work.aws.pages("ec2", "DescribeSubnets", "Subnets", Filters=filters)
        work.snapshot.subnets |= {subnet["SubnetId"]: subnet for subnet in found}


def _to_record(work: Work) -> dict[str, str]:
    """Return ids and tags, which are saved together."""
    things = tagging.user_provided(work)
    values = records.to_record(work, things, tagging.missing(work.desired, things))
    for zone in work.desired.config.networks.zones:
        values[keys.zone_key(zone.name, keys.SUFFIX)] = zone_suffix(work, zone.name)
        for at, name in zip((WORKERS_KEYS, *ROLE_KEYS.values()), _ids(zone), strict=True):
            if name:
                values |= to_record(zone.name, at, work.snapshot.subnets[name])
    return values | tables.to_record(work)


STEP: Final = Step(name=names.READ, observe=_observe, decide=_decide)
