"""Deletion of a zone's subnets, once they are empty (spec 30 §9.2)."""

from typing import Final

from pergola.providers.aws import state as keys
from pergola.providers.aws.resources.kinds import SUBNET
from pergola.providers.aws.resources.removal import deletion_step, each, one_of, to_delete
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.subnets.identity import of_zone

_ASSOCIATIONS: Final = (
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
    ids = [ours.key for ours in of_zone(zone)]
    associations = [keys.zone_key(zone, key) for key in _ASSOCIATIONS]

    async def delete(work: Work, subnet: str) -> None:
        await one_of(SUBNET)(work, subnet)
        for key in ids:
            if work.state.get(key) == subnet:
                work.state.forget(key)

    return deletion_step(
        delete_name(zone),
        lambda work: subnets_in(work, zone),
        each(delete),
        keys=(*ids, *associations),
        after=after,
    )


def subnets_in(work: Work, zone: str) -> list[str]:
    """Return the managed subnets of a zone."""
    return to_delete(work, *of_zone(zone))
