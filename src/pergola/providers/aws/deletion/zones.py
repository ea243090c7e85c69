"""Removes what there is once in each zone (spec 30 §9.2).

NAT gateway, then its elastic IP; the subnets once the NAT gateway is gone; then the route table.
"""

from pergola.flow import State
from pergola.providers.aws import state as keys
from pergola.providers.aws.deletion import addresses, nat, route_tables, subnets
from pergola.providers.aws.step import Step
from pergola.providers.aws.wanted import Wanted


def steps(wanted: Wanted, state: State, before_subnets: tuple[str, ...]) -> list[Step]:
    """The steps of all zones.

    Args:
        before_subnets: the steps that remove what may be in subnets.
    """
    watch = nat.Watch()
    return [
        step for zone in zones(wanted, state) for step in _steps_in(zone, watch, before_subnets)
    ]


def ends(wanted: Wanted, state: State) -> tuple[str, ...]:
    """The steps after which nothing of the zones is left."""
    return tuple(
        end
        for zone in zones(wanted, state)
        for end in (route_tables.name(zone), addresses.name(zone))
    )


def zones(wanted: Wanted, state: State) -> list[str]:
    """The zones of the config, and those that only the state knows."""
    configured = [zone.name for zone in wanted.config.networks.zones]
    return list(dict.fromkeys([*configured, *keys.zones_of(state)]))


def _steps_in(zone: str, watch: nat.Watch, before_subnets: tuple[str, ...]) -> list[Step]:
    gateway = nat.name(zone)
    return [
        nat.step(zone, watch),
        addresses.step(zone, after=(gateway,)),
        subnets.step(zone, after=(gateway, *before_subnets)),
        route_tables.zone_step(zone, after=(subnets.name(zone),)),
    ]
