"""Finding the subnets for load balancers: named, or else discovered by tags (spec 30 §8.4)."""

from collections.abc import Iterator
from typing import Final

from pergola.flow.picture import Fate, Note
from pergola.providers.aws import load_balancer_roles as load_balancers
from pergola.providers.aws.byo import records, tagging
from pergola.providers.aws.byo.subnets import ROLE_KEYS, to_record
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.load_balancer_roles import Role
from pergola.providers.aws.resources import byo_step_names as names
from pergola.providers.aws.resources.decision import Decision
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


def _decide(work: Work) -> Decision:
    found = _found(work)
    said = (f"{role}: {', '.join(each.values())}" for role, each in found.items() if each)
    return Decision(
        Note(Fate.KEEP, "; ".join(said) or "there are none"),
        record=_to_record(work, found),
        warnings=tuple(warnings(work.desired, found)),
    )


def _to_record(work: Work, found: Found) -> dict[str, str]:
    """Return what the state gets; subnets that the config names have records already."""
    values: dict[str, str] = {}
    for role, by_zone in found.items():
        for zone in work.desired.config.networks.zones:
            subnet = work.snapshot.subnets.get(by_zone.get(zone.name, ""))
            values |= to_record(zone.name, ROLE_KEYS[role], subnet)
        for subnet_id in by_zone.values():
            values |= records.as_users(work.state, subnet_id)
    return values


STEP: Final = Step(name=names.FIND, decide=_decide, after=(names.TAG,))
