"""Load balancers of Services in AWS, classic and network ones, in one form."""

from typing import NamedTuple

from pergola.api.objects import JsonObject, maps_at, uid_of
from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import tags_of
from pergola.sandbox.aws.world import everything


class Balancer(NamedTuple):
    """A load balancer.

    Attributes:
        groups: its security groups.
        ports: on which it listens.
        targets: the instances that it sends traffic to.
    """

    hostname: str
    scheme: str
    subnets: set[str]
    groups: list[str]
    tags: dict[str, str]
    ports: set[int]
    targets: set[str]


def ingress(service: JsonObject) -> list[JsonObject]:
    """Return the addresses of a Service."""
    return maps_at(service, "status", "loadBalancer", "ingress")


async def classic(account: AwsClient, service: JsonObject) -> Balancer:
    """Return the classic load balancer of a Service."""
    names = [_name(service)]
    answer = await account.call("elb", "DescribeLoadBalancers", LoadBalancerNames=names)
    [found] = maps_at(answer, "LoadBalancerDescriptions")
    answer = await account.call("elb", "DescribeTags", LoadBalancerNames=names)
    [tags] = maps_at(answer, "TagDescriptions")
    return Balancer(
        found["DNSName"],
        found["Scheme"],
        set(found["Subnets"]),
        found["SecurityGroups"],
        tags_of(tags),
        {each["Listener"]["LoadBalancerPort"] for each in found["ListenerDescriptions"]},
        {each["InstanceId"] for each in found["Instances"]},
    )


async def network(account: AwsClient, service: JsonObject) -> Balancer:
    """Return the network load balancer of a Service."""
    answer = await account.call("elbv2", "DescribeLoadBalancers", Names=[_name(service)])
    [found] = maps_at(answer, "LoadBalancers")
    arn = found["LoadBalancerArn"]
    answer = await account.call("elbv2", "DescribeTags", ResourceArns=[arn])
    [tags] = maps_at(answer, "TagDescriptions")
    listeners = await account.pages("elbv2", "DescribeListeners", "Listeners", LoadBalancerArn=arn)
    targets: set[str] = set()
    for group in await account.pages(
        "elbv2", "DescribeTargetGroups", "TargetGroups", LoadBalancerArn=arn
    ):
        answer = await account.call(
            "elbv2", "DescribeTargetHealth", TargetGroupArn=group["TargetGroupArn"]
        )
        health = maps_at(answer, "TargetHealthDescriptions")
        targets |= {each["Target"]["Id"] for each in health}
    return Balancer(
        found["DNSName"],
        found["Scheme"],
        {each["SubnetId"] for each in found["AvailabilityZones"]},
        found.get("SecurityGroups", []),
        tags_of(tags),
        {each["Port"] for each in listeners},
        targets,
    )


async def contents(account: AwsClient) -> dict[str, JsonObject]:
    """Return the contents of an account, with target groups."""
    groups = await account.pages("elbv2", "DescribeTargetGroups", "TargetGroups")
    return {
        **await everything(account),
        **{f"TargetGroups/{each['TargetGroupArn']}": each for each in groups},
    }


def _name(service: JsonObject) -> str:
    return f"a{uid_of(service).replace('-', '')}"[:32]
