"""Finding the subnets for load balancers: named, or else discovered by tags (spec 30 §8.4)."""

from collections.abc import Iterator
from typing import Final

from pergola.flow.picture import Fate, Note
from pergola.providers.aws import load_balancer_roles as load_balancers
from pergola.providers.aws.byo import records, tagging
from pergola.providers.aws.byo.subnets import ROLE_KEYS, remember
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.load_balancer_roles import Role
from pergola.providers.aws.resources import byo_step_names as names
from pergola.providers.aws.resources.step import Step, Work

Found = dict[Role, dict[str, str]]
"""Subnets by zone, for each role."""


def warnings(desired: Desired, found: Found) -> Iterator[str]:
    """Yield warnings that do not block a reconciliation, one sentence each."""
    zones = [zone.name for zone in desired.config.networks.zones]
    if not any(found.values()):
        yield (
            "no subnet is named or tagged for load balancers: Services of type LoadBalancer stay "
            f"pending; name publicSubnetID or internalSubnetID, or tag subnets with "
            f"{desired.cluster_tag}=shared and {Role.PUBLIC.tag}=1 or {Role.INTERNAL.tag}=1"
        )
    for role, by_zone in found.items():
        without = [zone for zone in zones if zone not in by_zone]
        if by_zone and without:
            yield (
                f"only some zones have a subnet for {role} load balancers: {', '.join(without)} "
                f"have none; name {role}SubnetID there, or tag a subnet with {role.tag}=1"
            )


def _found(work: Work) -> Found:
    subnets = tagging.with_tags(work.desired, work.snapshot.subnets)
    return {role: dict(load_balancers.in_zones(work.desired, role, subnets)) for role in Role}


def _plan(work: Work) -> Note:
    said = [
        f"{role}: {', '.join(by_zone.values())}"
        for role, by_zone in _found(work).items()
        if by_zone
    ]
    return Note(Fate.KEEP, "; ".join(said) or "there are none")


async def _ensure(work: Work) -> None:
    found = _found(work)
    for subnet_id in {each for by_zone in found.values() for each in by_zone.values()}:
        records.record_as_users(work.state, subnet_id)  # those named in the config have records
    for zone in work.desired.config.networks.zones:
        for role, by_zone in found.items():
            subnet = work.snapshot.subnets.get(by_zone.get(zone.name, ""))
            remember(work.state, zone.name, ROLE_KEYS[role], subnet)
    work.warnings.extend(warnings(work.desired, found))


STEP: Final = Step(name=names.FIND, plan=_plan, ensure=_ensure, after=(names.TAG,))
