"""All steps of a network, in an order in which they could run (spec 30 §3.3, §3.5).

The longest chain is the wait for NAT gateways; only the default routes come after it. Of a network
that is brought, everything is skipped save for what is only looked at.
"""

from pergola.providers.aws.step import Step
from pergola.providers.aws.steps import (
    default_security_group,
    dhcp_options,
    egress_only_gateway,
    egress_ranges,
    endpoints,
    internet_gateway,
    ipv6_block,
    main_route_table,
    service_range,
    vpc,
)
from pergola.providers.aws.steps.zones import nat, removed, zone_steps
from pergola.providers.aws.wanted import Wanted


def network_steps(wanted: Wanted) -> list[Step]:
    """The steps that create a network and keep it, by their names in `names`."""
    rooms = (
        dhcp_options,
        vpc,
        ipv6_block,
        default_security_group,
        internet_gateway,
        egress_only_gateway,
        endpoints,
        main_route_table,
        removed,
    )
    steps = [step for room in rooms for step in room.steps(wanted)]
    for zone in wanted.config.networks.zones:
        if not zone.workers_subnet_id:
            steps += zone_steps(wanted, zone)
    steps += endpoints.association_steps(wanted)
    steps += nat.waiting_steps(wanted)
    return [*steps, *service_range.steps(wanted), *egress_ranges.steps(wanted)]
