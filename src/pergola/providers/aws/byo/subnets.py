"""Read user-provided subnets; refuse before anything is written (spec 30 §4.3, §8.4)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import Code, ExtensionError, SeveralErrors
from pergola.flow import State
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import load_balancer_roles as load_balancers
from pergola.providers.aws import state as keys
from pergola.providers.aws.byo import records, tables, tagging
from pergola.providers.aws.config import Zone
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.load_balancer_roles import Role
from pergola.providers.aws.preflight import subnets as live
from pergola.providers.aws.preflight.vpc import ipv6_blocks
from pergola.providers.aws.resources import byo_step_names as names
from pergola.providers.aws.resources.step import Step, Work
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


def remember(state: State, zone: str, at: tuple[str, str, str], subnet: JsonObject | None) -> None:
    """Record a subnet of a zone with its actual ranges; drop one that was deleted.

    Args:
        at: the keys of its id, its IPv4 range and its IPv6 range.
    """
    values = ("", "", "")
    if subnet is not None:
        ipv6 = next(iter(ipv6_blocks(subnet)), "")
        values = (subnet["SubnetId"], str(subnet.get("CidrBlock") or ""), ipv6)
    for key, value in zip(at, values, strict=True):
        state.set(keys.zone_key(zone, key), value)


def problems(desired: Desired, snapshot: Snapshot) -> list[str]:
    """Return why the subnets cannot be used, one sentence each."""
    found = [f"{each} (to repair: {each.fix})" for each in live.check(desired, snapshot)]
    tagged = tagging.with_tags(desired, snapshot.subnets)
    return [*found, *load_balancers.ambiguities(desired, tagged)]


def _ids(zone: Zone) -> tuple[str | None, str | None, str | None]:
    return zone.workers_subnet_id, zone.public_subnet_id, zone.internal_subnet_id


def _plan(work: Work) -> Note:
    wrong = problems(work.desired, work.snapshot)
    if wrong:
        return Note(Fate.FAILED, "; ".join(wrong))
    count = len({each.id for each in live.named(work.desired)})
    return Note(Fate.KEEP, f"{count} subnets in {len(work.desired.config.networks.zones)} zones")


async def _ensure(work: Work) -> None:
    await _observe_again(work)
    wrong = [
        ExtensionError(text, Code.CONFIGURATION_PROBLEM)
        for text in problems(work.desired, work.snapshot)
    ]
    if wrong:
        raise wrong[0] if len(wrong) == 1 else SeveralErrors(wrong)
    _write_down(work)


async def _observe_again(work: Work) -> None:
    """Describe subnets that were not visible once more: they may be very new."""
    unseen = sorted({each.id for each in live.named(work.desired)} - work.snapshot.subnets.keys())
    if unseen:
        filters = [{"Name": "subnet-id", "Values": unseen}]
        found = await work.aws.pages("ec2", "DescribeSubnets", "Subnets", Filters=filters)
        work.snapshot.subnets |= {subnet["SubnetId"]: subnet for subnet in found}


def _write_down(work: Work) -> None:
    """Record ids and tags without a pause, so that they are saved together."""
    things = tagging.user_provided(work)
    records.record(work, things, tagging.missing(work.desired, things))
    for zone in work.desired.config.networks.zones:
        keys.suffix_of(work.state, zone.name)
        for at, name in zip((WORKERS_KEYS, *ROLE_KEYS.values()), _ids(zone), strict=True):
            if name:
                remember(work.state, zone.name, at, work.snapshot.subnets[name])
    tables.remember(work)


STEP: Final = Step(name=names.READ, plan=_plan, ensure=_ensure)
