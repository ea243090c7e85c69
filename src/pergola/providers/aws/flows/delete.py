"""The graph that deletes a cluster's infrastructure (spec 30 §9.1, §9.2).

It deletes resources that the state contains, and those with this cluster's tags: a run that was
killed may have created a resource that is missing in the state. With an empty state nothing is
deleted, since the same tags may belong to a cluster of another landscape. A run that creates
therefore saves a state first.
"""

from typing import Final

from pergola.flow import State
from pergola.providers.aws import state as keys
from pergola.providers.aws.byo import byo_delete_steps
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import (
    default_security_group,
    dhcp_options,
    egress_only_gateway,
    elastic_ips,
    endpoints,
    iam,
    internet_gateway,
    key_pair,
    load_balancers,
    main_route_table,
    security_group,
    vpc,
    zone_route_tables,
)
from pergola.providers.aws.resources.efs import deletion as efs
from pergola.providers.aws.resources.nat_gateways import deletion as nat_gateways
from pergola.providers.aws.resources.step import Step
from pergola.providers.aws.resources.subnets import deletion as subnets

_BYO_VPC: Final = "the VPC is user-provided"


def delete_steps(desired: Desired, state: State, *, remove_pod_routes: bool = False) -> list[Step]:
    """Return the steps that delete what was created, and our tags on the user's resources.

    With an empty state, none of them may run.

    Args:
        remove_pod_routes: whether to delete pod routes of deleted nodes from user-provided route
            tables (§7.2).
    """
    if desired.config.byo_subnets:
        network = _leave_user_provided(desired, remove_pod_routes=remove_pod_routes)
    else:
        network = _delete_managed(desired, state)
    return [
        *load_balancers.delete_steps(),
        *key_pair.delete_steps(),
        *iam.delete_steps(),
        efs.delete_step(desired, state),
        *network,
    ]


def _leave_user_provided(desired: Desired, *, remove_pod_routes: bool) -> list[Step]:
    leaving = byo_delete_steps(desired, remove_pod_routes=remove_pod_routes)
    before = (load_balancers.DELETE, *(step.name for step in leaving))
    return [*leaving, *security_group.delete_steps(after=before)]


def _delete_managed(desired: Desired, state: State) -> list[Step]:
    skip = _BYO_VPC if desired.config.byo_vpc else None
    zones = _zones(desired, state)
    ends = tuple(end for zone in zones for end in _ends_of_zone(zone))
    before_subnets = (load_balancers.DELETE, efs.DELETE)
    poll = nat_gateways.Watch()
    return [
        endpoints.delete_step(state),
        *(step for zone in zones for step in _zone_steps(zone, poll, before_subnets)),
        *security_group.delete_steps(after=(*before_subnets, *ends)),
        main_route_table.delete_step(after=ends, skip=None),
        internet_gateway.delete_step(after=(endpoints.DELETE, main_route_table.DELETE), skip=skip),
        egress_only_gateway.delete_step(after=ends, skip=skip),
        default_security_group.delete_step(after=(endpoints.DELETE,), skip=skip),
        vpc.delete_step(
            after=(
                internet_gateway.DELETE,
                egress_only_gateway.DELETE,
                default_security_group.FORGET,
                security_group.DELETE,
                load_balancers.DELETE,
            ),
            skip=skip,
        ),
        dhcp_options.delete_step(after=(vpc.DELETE,), skip=skip),
    ]


def _zones(desired: Desired, state: State) -> list[str]:
    """Return the zones of the config, and those that only the state contains."""
    configured = [zone.name for zone in desired.config.networks.zones]
    return list(dict.fromkeys([*configured, *keys.zones_of(state)]))


def _zone_steps(zone: str, poll: nat_gateways.Watch, before_subnets: tuple[str, ...]) -> list[Step]:
    """Return the steps of a zone.

    The NAT gateway is deleted first, then its elastic IP; subnets once the gateway is gone; then
    the route table.
    """
    gateway = nat_gateways.delete_name(zone)
    return [
        nat_gateways.delete_step(zone, poll),
        elastic_ips.delete_step(zone, after=(gateway,)),
        subnets.delete_step(zone, after=(gateway, *before_subnets)),
        zone_route_tables.delete_step(zone, after=(subnets.delete_name(zone),)),
    ]


def _ends_of_zone(zone: str) -> tuple[str, str]:
    """Return the steps after which nothing is left in a zone."""
    return zone_route_tables.delete_name(zone), elastic_ips.delete_name(zone)
