"""Observation of a network in AWS, without any decisions."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import filters_by
from pergola.cloud.errors import CloudError, NotFound
from pergola.externally_managed.aws.desired import Desired, LoadBalancer
from pergola.runtime.task_group import TaskGroup


@dataclass(frozen=True, slots=True)
class Observed:
    """AWS's answers.

    Attributes:
        account: the account of the credentials.
        vpcs: all matches; unless there is exactly one, everything else is empty.
        egress_only_gateways: those of the VPC, if its IPv6 is used.
        groups: the security groups of the VPC.
        foreign_groups: requested security groups that are not in the VPC.
        zones: all zones of the region that the account may use.
        load_balancers: those with the name or ARN, from both generations of the API.
        listeners: the listeners of the load balancer; a classic one contains its own.
    """

    account: str = ""
    vpcs: list[JsonObject] = field(default_factory=list)
    subnets: list[JsonObject] = field(default_factory=list)
    route_tables: list[JsonObject] = field(default_factory=list)
    internet_gateways: list[JsonObject] = field(default_factory=list)
    nat_gateways: list[JsonObject] = field(default_factory=list)
    egress_only_gateways: list[JsonObject] = field(default_factory=list)
    groups: list[JsonObject] = field(default_factory=list)
    foreign_groups: list[JsonObject] = field(default_factory=list)
    zones: list[JsonObject] = field(default_factory=list)
    load_balancers: list[JsonObject] = field(default_factory=list)
    listeners: list[JsonObject] = field(default_factory=list)


async def observe(aws: AwsClient, desired: Desired) -> Observed:
    """Return all descriptions of a network, using as few calls as possible.

    Raises:
        CloudError: AWS refused, or did not answer.
    """
    account, vpcs = await aws.account(), await _vpcs(aws, desired)
    if len(vpcs) != 1:
        return Observed(account, vpcs)
    vpc = {"vpc-id": vpcs[0]["VpcId"]}
    attached = {"attachment.vpc-id": vpcs[0]["VpcId"]}
    tagged = {**vpc, **_tags(desired.subnet_tags)}
    try:
        async with TaskGroup() as group:
            ask = group.create_task
            subnets = ask(_of(aws, "DescribeSubnets", "Subnets", tagged))
            tables = ask(_of(aws, "DescribeRouteTables", "RouteTables", vpc))
            internet = ask(_of(aws, "DescribeInternetGateways", "InternetGateways", attached))
            nat = ask(_of(aws, "DescribeNatGateways", "NatGateways", vpc))
            egress_only = ask(_egress_only_gateways(aws, desired, vpcs[0]["VpcId"]))
            groups = ask(_groups(aws, desired, vpc))
            zones = ask(aws.pages("ec2", "DescribeAvailabilityZones", "AvailabilityZones"))
            balancers = ask(_load_balancers(aws, desired))
    except ExceptionGroup as failed:
        raise _first(failed) from None
    return Observed(
        account,
        vpcs,
        subnets.result(),
        tables.result(),
        internet.result(),
        nat.result(),
        egress_only.result(),
        *groups.result(),
        zones.result(),
        *balancers.result(),
    )


def _first(failed: ExceptionGroup) -> Exception:
    """Return one of several failures, a permanent one if possible."""
    errors = [error for error in failed.exceptions if isinstance(error, CloudError)]
    errors.sort(key=lambda error: error.is_transient)
    return errors[0] if len(errors) == len(failed.exceptions) else failed


async def _vpcs(aws: AwsClient, desired: Desired) -> list[JsonObject]:
    filters = {"vpc-id": desired.vpc_id} if desired.vpc_id else _tags(desired.vpc_tags)
    return await _of(aws, "DescribeVpcs", "Vpcs", filters)


async def _of(
    aws: AwsClient, operation: str, items: str, filters: Mapping[str, str]
) -> list[JsonObject]:
    name = "Filter" if operation == "DescribeNatGateways" else "Filters"
    return await aws.pages("ec2", operation, items, **{name: filters_by(filters)})


async def _egress_only_gateways(aws: AwsClient, desired: Desired, vpc: str) -> list[JsonObject]:
    """Return the egress-only gateways of the VPC; AWS has no filter for it."""
    if not desired.ipv6:
        return []
    found = await aws.pages(
        "ec2", "DescribeEgressOnlyInternetGateways", "EgressOnlyInternetGateways"
    )
    return [
        gateway
        for gateway in found
        if any(each.get("VpcId") == vpc for each in gateway.get("Attachments") or ())
    ]


async def _groups(
    aws: AwsClient, desired: Desired, vpc: Mapping[str, str]
) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return the security groups of the VPC, and requested ones that are not in it."""
    groups = await _of(aws, "DescribeSecurityGroups", "SecurityGroups", vpc)
    missing = set(desired.groups.values()) - {group["GroupId"] for group in groups}
    if not missing:
        return groups, []
    # With a filter, so that a missing group does not make the whole request fail.
    by_id = [{"Name": "group-id", "Values": sorted(missing)}]
    return groups, await aws.pages("ec2", "DescribeSecurityGroups", "SecurityGroups", Filters=by_id)


async def _load_balancers(
    aws: AwsClient, desired: Desired
) -> tuple[list[JsonObject], list[JsonObject]]:
    named = desired.load_balancer
    if named is None or named.region not in ("", desired.region):
        return [], []
    found = await _newer(aws, named)
    if found:
        arn = found[0]["LoadBalancerArn"]
        listeners = await aws.pages("elbv2", "DescribeListeners", "Listeners", LoadBalancerArn=arn)
        return found, listeners
    return ([] if named.arn else await _classic(aws, named)), []


async def _newer(aws: AwsClient, named: LoadBalancer) -> list[JsonObject]:
    if named.region and not named.arn:
        return []
    by: JsonObject = {"LoadBalancerArns": [named.arn]} if named.arn else {"Names": [named.name]}
    try:
        return await aws.pages("elbv2", "DescribeLoadBalancers", "LoadBalancers", **by)
    except NotFound:
        return []


async def _classic(aws: AwsClient, named: LoadBalancer) -> list[JsonObject]:
    try:
        return await aws.pages(
            "elb",
            "DescribeLoadBalancers",
            "LoadBalancerDescriptions",
            LoadBalancerNames=[named.name],
        )
    except NotFound:
        return []


def _tags(tags: Mapping[str, str]) -> dict[str, str]:
    return {f"tag:{key}": value for key, value in tags.items()}
