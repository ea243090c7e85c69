"""Deletion of resources for zones or subnets that the config no longer has (spec 30 §3.5).

Validation prevents the removal of zones and changes of ranges, so there is rarely anything to
delete.
"""

from collections.abc import Iterable
from functools import partial
from itertools import chain
from typing import Final

from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.adoption import known
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.elastic_ips import managed_address, release
from pergola.providers.aws.resources.kinds import ROUTE_TABLE, SUBNET
from pergola.providers.aws.resources.nat_gateways.ensure import delete_nats
from pergola.providers.aws.resources.nat_gateways.facts import nats_of
from pergola.providers.aws.resources.ours import in_vpc
from pergola.providers.aws.resources.removal import is_ours, one_of
from pergola.providers.aws.resources.step import LONG_TIMEOUT, Step, Work
from pergola.providers.aws.resources.subnets.desired import ROLES, subnets_of
from pergola.providers.aws.resources.subnets.identity import known_subnet, of_zone
from pergola.providers.aws.resources.zone_route_tables import private_table

_NAT: Final = (keys.NAT_GATEWAY, keys.ADDRESS)


def steps(desired: Desired) -> list[Step]:
    """Return the step that deletes it, before new subnets, which may have the same ranges."""
    return [
        Step(
            name=names.REMOVED_ZONES,
            decide=_decide,
            after=(names.VPC,),
            skip="the subnets are user-provided" if desired.config.byo_subnets else None,
            timeout=LONG_TIMEOUT,
        )
    ]


def _zones(work: Work) -> list[str]:
    """Return the zones that the state has but the config does not."""
    configured = {zone.name for zone in work.desired.config.networks.zones}
    return [zone for zone in keys.zones_of(work.state) if zone not in configured]


def _zones_without_nat(work: Work) -> list[str]:
    """Return the zones with a NAT gateway or an elastic IP of ours that need none."""
    private = [zone.name for zone in work.desired.config.networks.zones if not zone.public]
    return [
        zone
        for zone in (*_zones(work), *private)
        if any(work.state.get(keys.zone_key(zone, key)) for key in _NAT)
    ]


def _subnets(work: Work) -> list[str]:
    """Return our subnets that the config no longer has."""
    zones = work.desired.config.networks.zones
    desired = {
        known_subnet(work, subnet) for zone in zones for subnet in subnets_of(work.desired, zone)
    }
    recorded = {name for role in ROLES for _, name in keys.in_zones(work.state, role)}
    known_zones = {*keys.zones_of(work.state), *(zone.name for zone in zones)}
    names_of_ours = {ours.name(work) for zone in known_zones for ours in of_zone(zone)}
    return [
        name
        for name, thing in work.snapshot.subnets.items()
        if in_vpc(work, thing)
        and name not in desired
        and (name in recorded or is_ours(work, thing, names_of_ours))
    ]


def _tables(work: Work) -> list[str]:
    """Return the private route tables of removed zones."""
    found = (known(work, private_table(zone)) for zone in _zones(work))
    return [name for name in found if name]


def _decide(work: Work) -> Decision:
    nats = {zone: nats_of(work, zone) for zone in _zones_without_nat(work)}
    addresses = {zone: name for zone in nats if (name := managed_address(work, zone))}
    subnets, tables = _subnets(work), _tables(work)
    found = [*chain(*nats.values()), *addresses.values(), *subnets, *tables]
    forget = (*_keys_of_nat(nats), *_keys_of_zones(work))
    if not found:
        return Decision.keep("there is nothing to remove", forget=forget)
    return Decision.deletion(
        f"{', '.join(found)}: no longer needed by any zone",
        *(partial(delete_nats, work, ids) for ids in nats.values()),
        *(partial(release, work, *each) for each in addresses.items()),
        *(partial(_delete_subnet, work, name) for name in subnets),
        *(partial(one_of(ROUTE_TABLE), work, name) for name in tables),
        forget=forget,
    )


def _keys_of_nat(zones: Iterable[str]) -> list[str]:
    return [keys.zone_key(zone, key) for zone in zones for key in _NAT]


def _keys_of_zones(work: Work) -> list[str]:
    return [
        keys.zone_key(zone, key)
        for zone in _zones(work)
        for key in work.state.under(f"{keys.ZONES}/{zone}")
    ]


async def _delete_subnet(work: Work, name: str) -> None:
    await one_of(SUBNET)(work, name)
    _forget(work, name)


def _forget(work: Work, subnet: str) -> None:
    for role in ROLES:
        for zone, name in list(keys.in_zones(work.state, role)):
            if name == subnet:
                work.state.forget(keys.zone_key(zone, role))
