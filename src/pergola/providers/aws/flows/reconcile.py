"""The graph that creates and maintains a cluster's infrastructure, in every mode (spec 30 §3.3).

The longest chain is the wait for NAT gateways, followed only by the default routes. In a
user-provided network most steps are skipped, and the rest only observe and tag.
"""

from dataclasses import replace
from typing import Final

from pergola.providers.aws.byo import byo_steps
from pergola.providers.aws.byo import vpc as byo_vpc
from pergola.providers.aws.config import Zone
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import (
    associations,
    default_security_group,
    dhcp_options,
    efs,
    egress_only_gateway,
    egress_ranges,
    elastic_ips,
    endpoint_associations,
    endpoints,
    iam,
    internet_gateway,
    ipv6_block,
    key_pair,
    main_route_table,
    security_group,
    service_range,
    vpc,
    zone_route_tables,
)
from pergola.providers.aws.resources import byo_step_names as byo
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.nat_gateways import ensure as nat_gateways
from pergola.providers.aws.resources.nat_gateways import waiting as nat_gateways_of_all_zones
from pergola.providers.aws.resources.step import Step
from pergola.providers.aws.resources.subnets import ensure as subnets
from pergola.providers.aws.resources.subnets import surplus

_AFTER_READ: Final = (
    names.SERVICE_RANGE,
    names.EGRESS_RANGES,
    # Nothing is created before the subnets are accepted. Also, a state that contains these but no
    # records of tags would look like one that was never lost (`byo.records`).
    iam.ROLE,
    key_pair.NAME,
)


def reconcile_steps(desired: Desired) -> list[Step]:
    """Return all steps that create and maintain a cluster's infrastructure, in every mode."""
    read = (byo.READ,) if desired.config.byo_subnets else ()
    steps = [
        *network_steps(desired),
        *byo_steps(desired, after=(names.VPC,)),
        *security_group.steps(desired),
        *efs.steps(desired),
        *iam.steps(desired),
        *key_pair.steps(desired),
    ]
    return [_after(step, read) for step in steps]


def network_steps(desired: Desired) -> list[Step]:
    """Return the steps that create and maintain a network, in a possible order of execution."""
    resources = (
        dhcp_options,
        vpc,
        byo_vpc,
        ipv6_block,
        default_security_group,
        internet_gateway,
        egress_only_gateway,
        endpoints,
        main_route_table,
        surplus,
    )
    steps = [step for resource in resources for step in resource.steps(desired)]
    for zone in desired.config.networks.zones:
        if not zone.workers_subnet_id:
            steps += zone_steps(desired, zone)
    last = (endpoint_associations, nat_gateways_of_all_zones, service_range, egress_ranges)
    return steps + [step for resource in last for step in resource.steps(desired)]


def zone_steps(desired: Desired, zone: Zone) -> list[Step]:
    """Return the steps of one zone, in a possible order of execution."""
    resources = (subnets, elastic_ips, nat_gateways, zone_route_tables, associations)
    return [step for resource in resources for step in resource.steps(desired, zone)]


def _after(step: Step, read: tuple[str, ...]) -> Step:
    """Return the step, delayed until the user's subnets were read if necessary."""
    return replace(step, after=(*step.after, *read)) if step.name in _AFTER_READ else step
