"""The graph that creates and maintains a cluster's infrastructure, in every mode (spec 30 §3.3).

The longest chain is the wait for NAT gateways, followed only by the default routes. In a
user-provided network most steps are skipped, and the rest only observe and tag.
"""

from dataclasses import replace
from typing import Final

from pergola.providers.aws.byo import byo_steps
from pergola.providers.aws.byo import vpc as byo_vpc
from pergola.providers.aws.config import Zone
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
from pergola.providers.aws.wanted import Wanted

_AFTER_READ: Final = (
    names.SERVICE_RANGE,
    names.EGRESS_RANGES,
    # Nothing is created before the subnets are accepted. Also, a state that contains these but no
    # records of tags would look like one that was never lost (`byo.records`).
    iam.ROLE,
    key_pair.NAME,
)


def reconcile_steps(wanted: Wanted) -> list[Step]:
    """Return all steps that create and maintain a cluster's infrastructure, in every mode."""
    read = (byo.READ,) if wanted.config.byo_subnets else ()
    steps = [
        *network_steps(wanted),
        *byo_steps(wanted, after=(names.VPC,)),
        *security_group.steps(wanted),
        *efs.steps(wanted),
        *iam.steps(wanted),
        *key_pair.steps(wanted),
    ]
    return [_after(step, read) for step in steps]


def network_steps(wanted: Wanted) -> list[Step]:
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
    steps = [step for resource in resources for step in resource.steps(wanted)]
    for zone in wanted.config.networks.zones:
        if not zone.workers_subnet_id:
            steps += zone_steps(wanted, zone)
    last = (endpoint_associations, nat_gateways_of_all_zones, service_range, egress_ranges)
    return steps + [step for resource in last for step in resource.steps(wanted)]


def zone_steps(wanted: Wanted, zone: Zone) -> list[Step]:
    """Return the steps of one zone, in a possible order of execution."""
    resources = (subnets, elastic_ips, nat_gateways, zone_route_tables, associations)
    return [step for resource in resources for step in resource.steps(wanted, zone)]


def _after(step: Step, read: tuple[str, ...]) -> Step:
    """Return the step, delayed until the user's subnets were read if necessary."""
    return replace(step, after=(*step.after, *read)) if step.name in _AFTER_READ else step
