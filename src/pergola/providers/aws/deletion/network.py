"""All steps that remove a cluster's infrastructure, in their order (spec 30 §9.1)."""

from pergola.flow import State
from pergola.providers.aws.deletion import (
    byo,
    efs,
    endpoints,
    gateways,
    iam,
    key_pair,
    load_balancers,
    route_tables,
    security_group,
    vpc,
    zones,
)
from pergola.providers.aws.step import Step
from pergola.providers.aws.wanted import Wanted

_OF_USER = "the VPC is the user's"


def deletion_steps(wanted: Wanted, state: State, *, remove_pod_routes: bool = False) -> list[Step]:
    """The steps that remove what was created, and the tags on what was brought.

    Nothing is to be done, and none of them run, if the state is empty.

    Args:
        remove_pod_routes: whether dead routes to pods go from route tables that were brought.
    """
    if wanted.config.brings_subnets:
        network = _of_user(byo.steps(wanted, remove_pod_routes=remove_pod_routes))
    else:
        network = _created(wanted, state)
    return [
        *load_balancers.steps(),
        *key_pair.steps(),
        *iam.steps(),
        efs.step(wanted, state),
        *network,
    ]


def _of_user(untagging: list[Step]) -> list[Step]:
    return [
        *untagging,
        *security_group.steps(
            after=(load_balancers.LOAD_BALANCERS, *(step.name for step in untagging))
        ),
    ]


def _created(wanted: Wanted, state: State) -> list[Step]:
    given = _OF_USER if wanted.config.brings_vpc else None
    ends = zones.ends(wanted, state)
    before_subnets = (load_balancers.LOAD_BALANCERS, efs.EFS)
    return [
        endpoints.step(skip=None),
        *zones.steps(wanted, state, before_subnets),
        *security_group.steps(after=(*before_subnets, *ends)),
        route_tables.main_step(after=ends, skip=None),
        gateways.internet_gateway(
            after=(endpoints.GATEWAY_ENDPOINTS, route_tables.MAIN), skip=given
        ),
        gateways.egress_only_gateway(after=ends, skip=given),
        vpc.default_security_group(after=(endpoints.GATEWAY_ENDPOINTS,), skip=given),
        vpc.vpc(
            after=(
                gateways.INTERNET_GATEWAY,
                gateways.EGRESS_ONLY_GATEWAY,
                vpc.DEFAULT_SECURITY_GROUP,
                security_group.NODES_SECURITY_GROUP,
                load_balancers.LOAD_BALANCERS,
            ),
            skip=given,
        ),
        vpc.dhcp_options(after=(vpc.VPC,), skip=given),
    ]
