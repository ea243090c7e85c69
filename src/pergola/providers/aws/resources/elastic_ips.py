"""The elastic IP of a zone's NAT gateway: allocated, or user-provided (spec 30 §3.5, §9.2)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import Code, ExtensionError
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.config import Zone
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources import tags
from pergola.providers.aws.resources.adoption import described, find, foreseen, known, remember
from pergola.providers.aws.resources.kinds import ADDRESS
from pergola.providers.aws.resources.removal import forget, note, remove, to_delete
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.zone_suffixes import zone_suffix

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
    recorded = work.state.get(_key(zone))
    if recorded and not _is_given(work, recorded):
        return recorded
    return known(work, ADDRESS, _key(zone), lambda each: _is_ours(work, each), _suffix(work, zone))


async def release(work: Work, zone: str) -> None:
    """Release the elastic IP that was allocated for a zone, as soon as it is unused.

    Raises:
        CloudError: AWS refused.
    """
    name = managed_address(work, zone)
    if name is not None:
        await remove(work, "ReleaseAddress", AllocationId=name)
        work.snapshot.addresses.pop(name, None)
    work.state.forget(_key(zone))


def _key(zone: str) -> str:
    return keys.zone_key(zone, keys.ADDRESS)


def _suffix(work: Work, zone: str) -> str:
    return f"eip-natgw-{zone_suffix(work, zone)}"


def _is_given(work: Work, name: str) -> bool:
    zones = work.desired.config.networks.zones
    return name in {zone.elastic_ip_allocation_id for zone in zones}


def _is_ours(work: Work, address: JsonObject) -> bool:
    return not _is_given(work, address["AllocationId"])


def _plan(work: Work, zone: Zone) -> Note:
    return foreseen(
        work,
        ADDRESS,
        _key(zone.name),
        lambda each: _is_ours(work, each),
        _suffix(work, zone.name),
        new="for the NAT gateway",
    )


async def _ensure(work: Work, zone: Zone) -> None:
    key, suffix = _key(zone.name), _suffix(work, zone.name)
    if await find(work, ADDRESS, key, lambda each: _is_ours(work, each), suffix):
        return
    desired = work.desired.tags(suffix)
    answer = await work.aws.call(
        "ec2",
        "AllocateAddress",
        Domain="vpc",
        TagSpecifications=tags.specification(ADDRESS.type, desired),
    )
    remember(work, ADDRESS, key, {**answer, "Tags": tags.as_list(desired)})


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
        work.state.forget(_key(zone.name))
    elif not work.snapshot.addresses.get(ours, {}).get("AssociationId"):
        await release(work, zone.name)


def delete_name(zone: str) -> str:
    """Return the name of a zone's step."""
    return f"release elastic IP in {zone}"


def delete_step(zone: str, after: tuple[str, ...]) -> Step:
    """Return the step that releases a zone's elastic IP."""

    async def ensure(work: Work) -> None:
        for each in _to_delete(work, zone):
            await remove(work, "ReleaseAddress", AllocationId=each)
            work.snapshot.addresses.pop(each, None)
        forget(work, keys.zone_key(zone, keys.ADDRESS))

    def plan(work: Work) -> Note:
        return note(_to_delete(work, zone))

    return Step(name=delete_name(zone), plan=plan, ensure=ensure, after=after)


def _to_delete(work: Work, zone: str) -> list[str]:
    suffix = work.state.get(keys.zone_key(zone, keys.SUFFIX))
    known = work.state.get(keys.zone_key(zone, keys.ADDRESS))
    of_user = {each.elastic_ip_allocation_id for each in work.desired.config.networks.zones}
    found = to_delete(
        work, work.snapshot.addresses, (known,), (work.desired.name(f"eip-natgw-{suffix}"),)
    )
    return [each for each in found if each not in of_user]
