"""Missing parts of a network in AWS: one sentence each, with the remedy (spec 50 §5, step 4)."""

from collections.abc import Iterator, Mapping, Sequence

from pergola.api.cluster_api import AWS_LOAD_BALANCER, AWS_SECURITY_GROUPS, AWS_ZONES
from pergola.externally_managed.aws.desired import Desired
from pergola.externally_managed.aws.observe import Observed
from pergola.externally_managed.aws.read import (
    ZONE,
    Balancer,
    Subnet,
    balancer_of,
    ipv6_block_of,
    nat_states,
    tagged_groups,
)

_SERVES = ("network", "application", "classic")


def problems_of(
    observed: Observed, desired: Desired, subnets: Sequence[Subnet], *, has_endpoint: bool
) -> Iterator[str]:
    """Yield the problems that make the network incomplete, in the order in which to fix them.

    Args:
        observed: an observation with exactly one VPC.
        has_endpoint: whether the AWSCluster already has an endpoint.
    """
    vpc = observed.vpcs[0]
    if desired.account and observed.account != desired.account:
        yield (
            f"the credentials are of account {observed.account}, but the network must be in "
            f"{desired.account}; use credentials of that account"
        )
    if vpc.get("State") not in (None, "available"):
        yield f"{vpc['VpcId']} is {vpc['State']}; wait until it is available"
    if desired.ipv6 and not ipv6_block_of(observed):
        yield (
            f"{vpc['VpcId']} has no IPv6 block, but spec.network.vpc.ipv6 is set; associate one, "
            "or remove the field"
        )
    yield from _zone_problems(observed, desired, subnets)
    states = nat_states(observed)
    for subnet in subnets:
        if subnet.zone in used_zones(desired, subnets) and not subnet.is_public:
            yield from _route_problems(subnet, states)
    yield from _group_problems(observed, desired)
    yield from _balancer_problems(observed, desired, has_endpoint=has_endpoint)


def used_zones(desired: Desired, subnets: Sequence[Subnet]) -> tuple[str, ...]:
    """Return the zones to use: the requested ones, else all that have subnets.

    Edge zones are used only on request.
    """
    return desired.zones or tuple(
        sorted({subnet.zone for subnet in subnets if subnet.zone_type == ZONE})
    )


def _zone_problems(
    observed: Observed, desired: Desired, subnets: Sequence[Subnet]
) -> Iterator[str]:
    vpc = observed.vpcs[0]["VpcId"]
    if not subnets:
        which = " with these tags" if desired.subnet_tags else ""
        yield f"{vpc} has no subnets{which}; create at least one private subnet"
        return
    known = {zone.get("ZoneName") for zone in observed.zones}
    private = {subnet.zone for subnet in subnets if not subnet.is_public}
    for zone in used_zones(desired, subnets):
        if known and zone not in known:
            yield (
                f"zone {zone} is not in region {desired.region}, or not enabled there; correct "
                f"annotation {AWS_ZONES}"
            )
        elif zone not in private:
            yield (
                f"zone {zone} has no private subnet in {vpc}; create one, or leave the zone out "
                f"of annotation {AWS_ZONES}"
            )


def _route_problems(subnet: Subnet, nat: Mapping[str, str]) -> Iterator[str]:
    ways = [route for route in subnet.routes if route.leaves]
    where = f"subnet {subnet.id} in {subnet.zone}"
    if not ways:
        yield (
            f"{where} has no route out: its route table {subnet.table} leads nowhere but into the "
            "VPC; add a route to a NAT or transit gateway"
        )
        return
    working = [route for route in ways if route.works]
    broken = [route for route in ways if not route.works and (route.is_default or not working)]
    for route in broken:
        through = f" through {route.target}" if route.target else ""
        yield (
            f"{where}: the route to {route.destination}{through} in route table {subnet.table} is "
            "a blackhole, because its target is gone; replace the route"
        )
    for route in working:
        state = nat.get(route.target, "available")
        if state != "available":
            yield f"{where} has its route out through {route.target}, which is {state}; repair it"


def _group_problems(observed: Observed, desired: Desired) -> Iterator[str]:
    vpc = observed.vpcs[0]["VpcId"]
    inside = {group["GroupId"] for group in observed.groups}
    outside = {group["GroupId"]: group.get("VpcId") for group in observed.foreign_groups}
    for role, group in desired.groups.items():
        if group in outside:
            yield (
                f"security group {group} for {role} is of {outside[group]}, not of {vpc}; name "
                f"one of this VPC in annotation {AWS_SECURITY_GROUPS}"
            )
        elif group not in inside:
            yield (
                f"security group {group} for {role} does not exist in region {desired.region} of "
                f"account {observed.account}; correct annotation {AWS_SECURITY_GROUPS}"
            )
    for role, groups in tagged_groups(observed, desired).items():
        if role not in desired.groups and len(groups) > 1:
            yield (
                f"security groups {', '.join(groups)} are all tagged for {role}; choose one with "
                f"annotation {AWS_SECURITY_GROUPS}"
            )


def _balancer_problems(
    observed: Observed, desired: Desired, *, has_endpoint: bool
) -> Iterator[str]:
    named = desired.load_balancer
    if named is None:
        return
    where = f"load balancer {named.name}"
    if named.region not in ("", desired.region):
        yield f"{where} is in region {named.region}, but the network is in {desired.region}"
        return
    if named.account not in ("", observed.account):
        yield (
            f"{where} is of account {named.account}, but the credentials are of {observed.account}"
        )
    balancer = balancer_of(observed)
    if balancer is None:
        yield (
            f"{where} does not exist in region {desired.region} of account {observed.account}; "
            f"create it, or correct annotation {AWS_LOAD_BALANCER}"
        )
        return
    yield from _serving_problems(balancer, where, observed.vpcs[0]["VpcId"])
    if balancer.ports and balancer.endpoint is None and not has_endpoint:
        yield (
            f"{where} listens on {', '.join(map(str, balancer.ports))}, and none of them is 6443 "
            "or 443; set spec.controlPlaneEndpoint to say which one it is"
        )


def _serving_problems(balancer: Balancer, where: str, vpc: str) -> Iterator[str]:
    if balancer.kind not in _SERVES:
        yield f"{where} is a {balancer.kind} load balancer, which cannot serve the API server"
        return
    if balancer.vpc != vpc:
        yield f"{where} is in {balancer.vpc}, not in {vpc}; name one of this VPC"
    if balancer.state not in ("active", "active_impaired"):
        yield f"{where} is {balancer.state}; wait until it is active, or repair it"
    if not balancer.ports:
        yield f"{where} has no listener; add one for the API server's port"
