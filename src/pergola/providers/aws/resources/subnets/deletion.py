"""Deletion of a zone's subnets, once they are empty (spec 30 §9.2)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.flow.picture import Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.resources.removal import forget, in_cluster_vpc, note, remove, to_delete
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.subnets.identity import names_in
from pergola.providers.aws.resources.waiting import all_done

_KEYS: Final = (keys.SUBNET_WORKERS, keys.SUBNET_PUBLIC, keys.SUBNET_INTERNAL)
_ALSO_FORGOTTEN: Final = (
    keys.ASSOCIATION_WORKERS,
    keys.ASSOCIATION_PUBLIC,
    keys.ASSOCIATION_INTERNAL,
)
"""AWS removes a subnet's association with its route table together with the subnet."""


def delete_name(zone: str) -> str:
    """Return the name of a zone's step."""
    return f"delete subnets in {zone}"


def delete_step(zone: str, after: tuple[str, ...]) -> Step:
    """Return the step that deletes a zone's subnets."""

    async def ensure(work: Work) -> None:
        await all_done(*(_remove(work, zone, each) for each in subnets_in(work, zone)))
        forget(work, *(keys.zone_key(zone, key) for key in (*_KEYS, *_ALSO_FORGOTTEN)))

    def plan(work: Work) -> Note:
        return note(subnets_in(work, zone))

    return Step(name=delete_name(zone), plan=plan, ensure=ensure, after=after)


def subnets_in(work: Work, zone: str) -> list[str]:
    """Return the managed subnets of a zone."""
    accept = in_cluster_vpc(work)

    def of_zone(subnet: JsonObject) -> bool:
        return accept(subnet) and subnet.get("AvailabilityZone") == zone

    known = (work.state.get(keys.zone_key(zone, key)) for key in _KEYS)
    return to_delete(work, work.snapshot.subnets, known, names_in(work, zone), of_zone)


async def _remove(work: Work, zone: str, subnet: str) -> None:
    await remove(work, "DeleteSubnet", SubnetId=subnet)
    work.snapshot.subnets.pop(subnet, None)
    for key in _KEYS:
        if work.state.get(keys.zone_key(zone, key)) == subnet:
            forget(work, keys.zone_key(zone, key))
