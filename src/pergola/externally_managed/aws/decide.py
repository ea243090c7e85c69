"""The desired AWSCluster, from AWS's descriptions of its network: pure (spec 50 §5, §8)."""

from collections.abc import Mapping, Sequence
from typing import Any

from pergola.api.cluster_api import AWS_CONTROL_PLANE_TAG, AWS_VPC, AWS_VPC_TAGS
from pergola.api.objects import JsonObject, map_at
from pergola.externally_managed.aws.completeness import problems_of, used_zones
from pergola.externally_managed.aws.desired import Desired
from pergola.externally_managed.aws.observe import Observed
from pergola.externally_managed.aws.read import (
    Balancer,
    Subnet,
    balancer_of,
    internet_gateway_of,
    ipv6_block_of,
    subnets_of,
    tagged_groups,
    tags_of,
)
from pergola.externally_managed.contract import Endpoint, FailureDomain, endpoint_of
from pergola.externally_managed.description import Network
from pergola.externally_managed.ownership import ENDPOINT, owned_fields
from pergola.externally_managed.sources import NOT_FOUND, SourceProblem
from pergola.externally_managed.status import CONFLICT


def decide_network(obj: Mapping[str, Any], observed: Observed, desired: Desired) -> Network:
    """Return the network that an AWSCluster should have.

    Raises:
        SourceProblem: no VPC matches, several do, or the VPC is not the previous one.
    """
    _only_vpc(observed, desired)
    _same_vpc(obj, observed)
    subnets = subnets_of(observed)
    balancer = balancer_of(observed)
    groups = groups_by_role(observed, desired)
    endpoint, changed = _endpoint(obj, observed, balancer)
    complete = problems_of(observed, desired, subnets, has_endpoint=endpoint is not None)
    return Network(
        endpoint=endpoint,
        failure_domains=failure_domains_of(desired, subnets),
        spec={"network": _network(obj, observed, desired, groups)},
        status=_status(obj, observed, groups, balancer),
        problems=(*complete, *changed),
    )


def failure_domains_of(desired: Desired, subnets: Sequence[Subnet]) -> tuple[FailureDomain, ...]:
    """Return a domain for each zone with a private subnet; tags can exclude control planes."""
    private: dict[str, list[Subnet]] = {}
    for subnet in subnets:
        if not subnet.is_public and subnet.zone in used_zones(desired, subnets):
            private.setdefault(subnet.zone, []).append(subnet)
    return tuple(
        FailureDomain(zone, any(_takes_control_planes(subnet) for subnet in found))
        for zone, found in sorted(private.items())
    )


def groups_by_role(observed: Observed, desired: Desired) -> dict[str, JsonObject]:
    """Return the unambiguous security group of each role: the named one, or the only tagged one."""
    known = {group["GroupId"]: group for group in observed.groups}
    tagged = {
        role: found[0]
        for role, found in tagged_groups(observed, desired).items()
        if len(found) == 1
    }
    chosen = {**tagged, **desired.groups}
    return {role: known[chosen[role]] for role in sorted(chosen) if chosen[role] in known}


def _only_vpc(observed: Observed, desired: Desired) -> None:
    where = f"in region {desired.region} of account {observed.account}"
    if not observed.vpcs and desired.vpc_id:
        raise SourceProblem(
            NOT_FOUND,
            f"{desired.vpc_id}, which annotation {AWS_VPC} names, does not exist {where}; correct "
            "it, or spec.region, or use credentials of its account",
        )
    tags = ",".join(f"{key}={value}" for key, value in desired.vpc_tags.items())
    if not observed.vpcs:
        raise SourceProblem(NOT_FOUND, f"no VPC with tags {tags} exists {where}; tag one")
    if len(observed.vpcs) > 1:
        ids = ", ".join(sorted(vpc["VpcId"] for vpc in observed.vpcs))
        raise SourceProblem(
            NOT_FOUND,
            f"several VPCs have tags {tags} {where}: {ids}; choose one with annotation {AWS_VPC}, "
            f"or add a tag to annotation {AWS_VPC_TAGS}",
        )


def _same_vpc(obj: Mapping[str, Any], observed: Observed) -> None:
    """Check that the VPC is unchanged: the webhook refuses a change, and machines are in it."""
    live = map_at(obj, "spec", "network", "vpc").get("id")
    found = observed.vpcs[0]["VpcId"]
    if live not in (None, "", found):
        raise SourceProblem(
            CONFLICT,
            f"spec.network.vpc.id is {live} and cannot change, but the network is {found}; correct "
            f"the annotation, or create another cluster in {found}",
        )


def _endpoint(
    obj: Mapping[str, Any], observed: Observed, balancer: Balancer | None
) -> tuple[Endpoint | None, tuple[str, ...]]:
    """Return the endpoint, and its problems.

    An endpoint that we set is kept whatever happens to the load balancer, because the webhook and
    the Cluster require it. One that a user set is compared along with all other fields
    (`ownership`).
    """
    given = endpoint_of(obj)
    found = None
    if balancer is not None and balancer.vpc == observed.vpcs[0]["VpcId"]:
        found = balancer.endpoint
    if not given.is_valid or found in (None, given):
        return found or (given if given.is_valid else None), ()
    if "host" not in owned_fields(obj, "spec").ours.get(ENDPOINT, {}):
        return found, ()
    problem = (
        f"the load balancer is now at {found}, but spec.controlPlaneEndpoint is {given} and "
        "cannot change; make the old name point to the load balancer, or create another cluster"
    )
    return given, (problem,)


def _network(
    obj: Mapping[str, Any],
    observed: Observed,
    desired: Desired,
    groups: Mapping[str, JsonObject],
) -> JsonObject:
    vpc, subnets = observed.vpcs[0], subnets_of(observed)
    found: JsonObject = {
        "vpc": _filled(
            id=vpc["VpcId"],
            cidrBlock=vpc.get("CidrBlock"),
            internetGatewayId=internet_gateway_of(observed),
            tags=tags_of(vpc),
        )
    }
    if desired.ipv6:
        found["vpc"]["ipv6"] = _ipv6(obj, observed)
    if subnets:
        found["subnets"] = [_subnet(subnet, ipv6=desired.ipv6) for subnet in subnets]
    if groups:
        found["securityGroupOverrides"] = {role: group["GroupId"] for role, group in groups.items()}
    return found


def _ipv6(obj: Mapping[str, Any], observed: Observed) -> JsonObject:
    block, gateways = ipv6_block_of(observed), observed.egress_only_gateways
    found = _filled(
        egressOnlyInternetGatewayId=min(
            (str(each["EgressOnlyInternetGatewayId"]) for each in gateways), default=""
        )
    )
    # The provider refuses a block and a pool of IPAM together.
    if map_at(obj, "spec", "network", "vpc", "ipv6").get("ipamPool") is None:
        found |= _filled(cidrBlock=block.get("Ipv6CidrBlock"), poolId=block.get("Ipv6Pool"))
    return found


def _subnet(subnet: Subnet, *, ipv6: bool) -> JsonObject:
    return {
        **_filled(
            id=subnet.id,
            resourceID=subnet.id,
            cidrBlock=subnet.cidr,
            availabilityZone=subnet.zone,
            zoneType=subnet.zone_type,
            routeTableId=subnet.table,
            natGatewayId=subnet.nat,
            tags=dict(subnet.tags),
            isIpv6=ipv6 and bool(subnet.cidr6),
            ipv6CidrBlock=subnet.cidr6 if ipv6 else "",
        ),
        "isPublic": subnet.is_public,
    }


def _status(
    obj: Mapping[str, Any],
    observed: Observed,
    groups: Mapping[str, JsonObject],
    balancer: Balancer | None,
) -> JsonObject:
    """Return `status.networkStatus`; outdated fields are null."""
    desired: JsonObject = {
        "securityGroups": {
            role: _filled(id=group["GroupId"], name=group.get("GroupName"), tags=tags_of(group))
            for role, group in groups.items()
        },
        "apiServerElb": _filled(name=balancer.name, dnsName=balancer.host, scheme=balancer.scheme)
        if balancer is not None
        else {},
    }
    live = map_at(obj, "status", "networkStatus")
    changed = {name: value or None for name, value in desired.items() if value or name in live}
    return {"networkStatus": changed} if changed else {}


def _takes_control_planes(subnet: Subnet) -> bool:
    return subnet.tags.get(AWS_CONTROL_PLANE_TAG, "").lower() != "false"


def _filled(**fields: Any) -> JsonObject:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value}
