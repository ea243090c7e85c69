"""The elastic IP of a zone's NAT gateway: allocated, or user-provided (spec 30 §3.5, §9.2)."""

from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws import state as keys
from pergola.providers.aws.config import Zone
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.adoption import (
    create_or_keep,
    described,
    known,
    refresh,
)
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.kinds import ADDRESS
from pergola.providers.aws.resources.ours import Ours
from pergola.providers.aws.resources.removal import deletion_step, each, one_of, to_delete
from pergola.providers.aws.resources.step import Step, Work

NO_PUBLIC_SUBNET: Final = "the zone has no public subnet"


def steps(desired: Desired, zone: Zone) -> list[Step]:
    """Return the step that allocates one, or releases ours once the user provides one."""
    del desired
    ours, given = _ours(zone.name), zone.elastic_ip_allocation_id is not None
    return [
        Step(
            name=names.address(zone.name),
            observe=partial(_observe_given, zone=zone) if given else partial(refresh, ours=ours),
            decide=partial(_decide_given if given else _decide, zone=zone),
            after=(names.outdated_nat(zone.name),),
            skip=None if zone.public else NO_PUBLIC_SUBNET,
        )
    ]


def desired_address(work: Work, zone: Zone) -> str | None:
    """Return the elastic IP for the NAT gateway; None if it is not allocated yet."""
    return zone.elastic_ip_allocation_id or managed_address(work, zone.name)


def managed_address(work: Work, zone: str) -> str | None:
    """Return the elastic IP that was allocated for a zone; never a user-provided one.

    The state counts even if the snapshot does not contain it yet.

    Raises:
        ExtensionError: the state contains none, and several have its tags.
    """
    recorded = work.state.get(_ours(zone).key)
    if recorded and not _is_given(work, recorded):
        return recorded
    return known(work, _ours(zone))


async def release(work: Work, zone: str, name: str) -> None:
    """Release the elastic IP that was allocated for a zone, as soon as it is unused.

    Raises:
        CloudError: AWS refused.
    """
    await one_of(ADDRESS)(work, name)
    work.state.forget(_ours(zone).key)


def _ours(zone: str) -> Ours:
    return Ours(
        kind=ADDRESS,
        key=keys.zone_key(zone, keys.ADDRESS),
        suffix="eip-natgw",
        zone=zone,
        accept=_was_allocated,
    )


def _was_allocated(work: Work, address: JsonObject) -> bool:
    return not _is_given(work, address["AllocationId"])


def _is_given(work: Work, name: str) -> bool:
    zones = work.desired.config.networks.zones
    return name in {zone.elastic_ip_allocation_id for zone in zones}


def _decide(work: Work, zone: Zone) -> Decision:
    new, operation = "for the NAT gateway", "AllocateAddress"
    return create_or_keep(work, _ours(zone.name), new, operation, Domain="vpc")


async def _observe_given(work: Work, zone: Zone) -> None:
    name = zone.elastic_ip_allocation_id or ""
    if name not in work.snapshot.addresses and await described(work, ADDRESS, name) is None:
        raise ExtensionError(
            f"elastic IP {name} of zone {zone.name} has not been found in {work.desired.region}; "
            "allocate one and name it in networks.zones[].elasticIPAllocationID",
            Code.CONFIGURATION_PROBLEM,
        )


def _decide_given(work: Work, zone: Zone) -> Decision:
    given, ours = zone.elastic_ip_allocation_id, managed_address(work, zone.name)
    if ours is None:
        return Decision.keep(f"{given}, named in the config", {_ours(zone.name).key: ""})
    is_used = work.snapshot.addresses.get(ours, {}).get("AssociationId")
    calls = () if is_used else (partial(release, work, zone.name, ours),)
    return Decision.deletion(f"{ours} is released; {given} is used", *calls)


def delete_name(zone: str) -> str:
    """Return the name of a zone's step."""
    return f"release elastic IP in {zone}"


def delete_step(zone: str, after: tuple[str, ...]) -> Step:
    """Return the step that releases a zone's elastic IP."""

    def ids(work: Work) -> list[str]:
        return [name for name in to_delete(work, _ours(zone)) if not _is_given(work, name)]

    return deletion_step(
        delete_name(zone), ids, each(one_of(ADDRESS)), keys=(_ours(zone).key,), after=after
    )
