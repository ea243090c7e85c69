"""Load balancers and target groups that Kubernetes left behind (spec 30 §9.1).

Only resources in the cluster's VPC with the exact value `owned` of the cluster's tag are deleted:
other clusters may share the VPC. Load balancers are deleted before their security groups.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.cloud.errors import NotFound
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import OWNED
from pergola.providers.aws.resources import load_balancer_groups as balancer_groups
from pergola.providers.aws.resources.decision import Decision, all_done
from pergola.providers.aws.resources.ours import vpc_of
from pergola.providers.aws.resources.removal import is_of_cloud_controller, remove
from pergola.providers.aws.resources.step import CLEANUP_TIMEOUT, Step, Work

DELETE: Final = "destroy load balancers and security groups of Kubernetes"
_CHUNK: Final = 20
"""The number of resources whose tags AWS describes at once."""
_Ask = Callable[[list[str]], Awaitable[list[JsonObject]]]


def delete_steps() -> list[Step]:
    """Return the step that deletes everything that Services of the cluster have in AWS."""
    return [Step(name=DELETE, decide=_decide, timeout=CLEANUP_TIMEOUT)]


def _decide(work: Work) -> Decision:
    vpc = vpc_of(work)
    if work.state.get(keys.BALANCERS_DESTROYED):
        return Decision.skip("it was already done")
    if not vpc:
        done = {keys.BALANCERS_DESTROYED: keys.TRUE}
        return Decision.skip("there is no VPC", record=done)
    said = f"those in {vpc} with the tag {work.desired.cluster_tag}={OWNED}"
    return Decision.deletion(said, partial(_remove_all, work))


async def _remove_all(work: Work) -> None:
    await all_done(_remove_classic(work), _remove_newer(work))
    await balancer_groups.remove_all(work)
    work.state.set(keys.BALANCERS_DESTROYED, keys.TRUE)


async def _remove_classic(work: Work) -> None:
    there = await work.aws.pages("elb", "DescribeLoadBalancers", "LoadBalancerDescriptions")
    names = [each["LoadBalancerName"] for each in there if each.get("VPCId") == vpc_of(work)]

    async def ask(chunk: list[str]) -> list[JsonObject]:
        answer = await work.aws.call("elb", "DescribeTags", LoadBalancerNames=chunk)
        found: list[JsonObject] = answer["TagDescriptions"]
        return found

    marks = await _marks(work, names, "LoadBalancerName", ask)
    await all_done(
        *(
            remove(work, "DeleteLoadBalancer", service="elb", LoadBalancerName=name)
            for name in names
            if is_of_cloud_controller(marks.get(name))
        )
    )


async def _remove_newer(work: Work) -> None:
    """Delete application and network load balancers, then their target groups."""

    async def ask(chunk: list[str]) -> list[JsonObject]:
        answer = await work.aws.call("elbv2", "DescribeTags", ResourceArns=chunk)
        found: list[JsonObject] = answer["TagDescriptions"]
        return found

    balancers, groups = await _in_vpc(work)
    marks = await _marks(work, [*balancers, *groups], "ResourceArn", ask)
    doomed = {arn for arn in balancers if is_of_cloud_controller(marks.get(arn))}
    await all_done(
        *(
            remove(work, "DeleteLoadBalancer", service="elbv2", LoadBalancerArn=arn)
            for arn in sorted(doomed)
        )
    )
    await all_done(
        *(
            remove(work, "DeleteTargetGroup", service="elbv2", TargetGroupArn=arn)
            for arn, users in groups.items()
            if is_of_cloud_controller(marks.get(arn, _was_for(users, doomed)))
        )
    )


def _was_for(users: Collection[str], doomed: Collection[str]) -> str | None:
    """Return the tag value of an untagged target group: that of its load balancers."""
    return OWNED if users and all(user in doomed for user in users) else None


async def _in_vpc(work: Work) -> tuple[list[str], dict[str, list[str]]]:
    """Return load balancers, and target groups with the load balancers that use them, by ARN."""
    vpc = vpc_of(work)
    balancers = await work.aws.pages("elbv2", "DescribeLoadBalancers", "LoadBalancers")
    groups = await work.aws.pages("elbv2", "DescribeTargetGroups", "TargetGroups")
    return (
        [each["LoadBalancerArn"] for each in balancers if each.get("VpcId") == vpc],
        {
            each["TargetGroupArn"]: list(each.get("LoadBalancerArns") or ())
            for each in groups
            if each.get("VpcId") == vpc
        },
    )


async def _marks(work: Work, names: Sequence[str], name: str, ask: _Ask) -> dict[str, str]:
    """Return the values of the cluster's tag on the resources that have it."""
    key = work.desired.cluster_tag
    chunks = [list(names[start : start + _CHUNK]) for start in range(0, len(names), _CHUNK)]
    return {
        each[name]: tags_of(each)[key]
        for chunk in chunks
        for each in await _described(ask, chunk)
        if key in tags_of(each)
    }


async def _described(ask: _Ask, chunk: list[str]) -> list[JsonObject]:
    """Describe the tags of a chunk; if one resource was deleted, those of the others."""
    try:
        return await ask(chunk)
    except NotFound:
        if len(chunk) == 1:
            return []
    half = len(chunk) // 2
    return [*await _described(ask, chunk[:half]), *await _described(ask, chunk[half:])]
