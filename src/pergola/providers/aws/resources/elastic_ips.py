"""The elastic IP of a zone's NAT gateway: allocated, or user-provided (spec 30 §3.5, §9.2)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import Code, ExtensionError
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.config import Zone
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.adoption import create, described, find, foreseen, known
from pergola.providers.aws.resources.kinds import ADDRESS
from pergola.providers.aws.resources.ours import Ours
from pergola.providers.aws.resources.removal import delete_step as delete_step_of
from pergola.providers.aws.resources.removal import each, one_of, to_delete
from pergola.providers.aws.resources.step import Step, Work

NO_PUBLIC_SUBNET: Final = "the zone has no public subnet"


def steps(desired: Desired, zone: Zone) -> list[Step]:
    """Return the step that allocates one, or releases ours once the user provides one."""
    del desired
    given = zone.elastic_ip_allocation_id is not None
    return [
        Step(
            name=names.address(zone.name),
            plan=lambda work: _plan_given(work, zone) if given else _plan(work, zone),
            ensure=lambda work: _ensure_given(work, zone) if given else _ensure(work, zone),
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


async def release(work: Work, zone: str) -> None:
    """Release the elastic IP that was allocated for a zone, as soon as it is unused.

    Raises:
        CloudError: AWS refused.
    """
    name = managed_address(work, zone)
    if name is not None:
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


def _plan(work: Work, zone: Zone) -> Note:
    return foreseen(work, _ours(zone.name), new="for the NAT gateway")


async def _ensure(work: Work, zone: Zone) -> None:
    if not await find(work, _ours(zone.name)):
        await create(work, _ours(zone.name), "AllocateAddress", Domain="vpc")


def _plan_given(work: Work, zone: Zone) -> Note:
    ours = managed_address(work, zone.name)
    if ours:
        return Note(Fate.DELETE, f"{ours} is released; {zone.elastic_ip_allocation_id} is used")
    return Note(Fate.KEEP, f"{zone.elastic_ip_allocation_id}, named in the config")


async def _ensure_given(work: Work, zone: Zone) -> None:
    name = zone.elastic_ip_allocation_id or ""
    if name not in work.snapshot.addresses and await described(work, ADDRESS, name) is None:
        raise ExtensionError(
            f"elastic IP {name} of zone {zone.name} has not been found in {work.desired.region}; "
            "allocate one and name it in networks.zones[].elasticIPAllocationID",
            Code.CONFIGURATION_PROBLEM,
        )
    ours = managed_address(work, zone.name)
    if ours is None:
        work.state.forget(_ours(zone.name).key)
    elif not work.snapshot.addresses.get(ours, {}).get("AssociationId"):
        await release(work, zone.name)


def delete_name(zone: str) -> str:
    """Return the name of a zone's step."""
    return f"release elastic IP in {zone}"


def delete_step(zone: str, after: tuple[str, ...]) -> Step:
    """Return the step that releases a zone's elastic IP."""

    def ids(work: Work) -> list[str]:
        return [name for name in to_delete(work, _ours(zone)) if not _is_given(work, name)]

    return delete_step_of(
        delete_name(zone), ids, each(one_of(ADDRESS)), keys=(_ours(zone).key,), after=after
    )
