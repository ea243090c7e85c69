"""Traffic to and from a bastion: its security group, and a rule for the nodes' group.

The rules of a user-provided security group are never written (spec 30 §10.1 c).
"""

from contextlib import suppress
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import filters_by, tags_of
from pergola.cloud.errors import AlreadyExists, DependencyProblem, NotFound
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws.bastion.site import Site
from pergola.providers.aws.desired import OWNED, OWNED_BEFORE
from pergola.providers.aws.resources.security_group.rules import (
    ALL,
    EGRESS,
    EVERYWHERE,
    EVERYWHERE_6,
    INGRESS,
    SSH,
    TCP,
    Direction,
    Rule,
    compare,
    permissions,
    rules_of,
)
from pergola.providers.aws.resources.tags import specification

DESCRIPTION: Final = "SSH access for Bastion"
Groups = dict[str, JsonObject]
_DIRECTIONS: Final[tuple[Direction, ...]] = (INGRESS, EGRESS)


async def groups_of(aws: AwsClient, site: Site) -> Groups:
    """Return the security groups of the VPC; those of the bastion if the VPC is unknown."""
    by = (
        filters_by({"vpc-id": site.vpc})
        if site.vpc
        else filters_by({"group-name": site.group_name})
    )
    found = await aws.pages("ec2", "DescribeSecurityGroups", "SecurityGroups", Filters=by)
    return {group["GroupId"]: group for group in found}


async def open_for(aws: AwsClient, site: Site) -> tuple[str, str]:
    """Create the bastion's group and its rules.

    Returns:
        Its id, and what the user must do in addition; empty if nothing.
    """
    groups = await groups_of(aws, site)
    group = own_group(site, groups) or await _create(aws, site)
    name = str(group["GroupId"])
    await _ensure_rules(aws, site, group)
    rule = Rule(INGRESS, TCP, SSH, name)
    nodes = groups.get(site.nodes_group)
    if nodes is None or _allows(nodes, rule):
        return name, ""
    if site.is_users_group:
        return name, (
            f"security group {site.nodes_group} is user-provided and is not changed: let tcp 22 "
            f"in from {name}, as long as there is the bastion "
            "(aws ec2 authorize-security-group-ingress "
            f"--group-id {site.nodes_group} --protocol tcp --port 22 --source-group {name})"
        )
    with suppress(AlreadyExists):
        await _write(aws, "AuthorizeSecurityGroup", site.nodes_group, [rule])
    return name, ""


def own_group(site: Site, groups: Groups) -> JsonObject | None:
    """Return the bastion's security group."""
    return next((g for g in groups.values() if g.get("GroupName") == site.group_name), None)


async def close_for(aws: AwsClient, site: Site, group: JsonObject) -> None:
    """Revoke rules that let the bastion in from groups of the cluster."""
    name = str(group["GroupId"])
    same_vpc = filters_by({"vpc-id": str(group["VpcId"])})
    for each in await aws.pages(
        "ec2", "DescribeSecurityGroups", "SecurityGroups", Filters=same_vpc
    ):
        if each["GroupId"] == name or not _may_be_written(site, each):
            continue
        rules = [rule for rule in rules_of(each) if rule.peer == name]
        if rules:
            with suppress(NotFound):
                await _write(aws, "RevokeSecurityGroup", str(each["GroupId"]), rules)


async def delete_group(aws: AwsClient, group: JsonObject) -> None:
    """Delete the bastion's group.

    Raises:
        ExtensionError: a resource of the user still refers to it.
    """
    name = str(group["GroupId"])
    try:
        await aws.call("ec2", "DeleteSecurityGroup", GroupId=name)
    except NotFound:
        return
    except DependencyProblem:
        raise ExtensionError(
            f"security group {name} of the bastion is still in use: remove the rule that lets tcp "
            "22 in from it wherever you allowed it",
            Code.DEPENDENCIES,
        ) from None


def _may_be_written(site: Site, group: JsonObject) -> bool:
    """Return whether it is the group that was created for the nodes: users may use its tag."""
    if group["GroupId"] == site.nodes_group:
        return not site.is_users_group
    given = tags_of(group)
    owner = given.get(f"kubernetes.io/cluster/{site.technical_id}")
    return owner in (OWNED, OWNED_BEFORE) and given.get("Name") == f"{site.technical_id}-nodes"


async def _create(aws: AwsClient, site: Site) -> JsonObject:
    answer = await aws.call(
        "ec2",
        "CreateSecurityGroup",
        GroupName=site.group_name,
        Description=DESCRIPTION,
        VpcId=site.vpc,
        TagSpecifications=specification("security-group", site.tags(site.group_name)),
    )
    allowed = permissions([Rule(EGRESS, ALL, None, EVERYWHERE)], EGRESS)
    return {"GroupId": answer["GroupId"], "VpcId": site.vpc, "IpPermissionsEgress": allowed}


async def _ensure_rules(aws: AwsClient, site: Site, group: JsonObject) -> None:
    desired = {Rule(INGRESS, TCP, SSH, source) for source in site.sources}
    desired.add(Rule(EGRESS, TCP, SSH, site.nodes_group))
    changes, name = compare(frozenset(desired), group), str(group["GroupId"])
    with suppress(AlreadyExists):
        await _write(aws, "AuthorizeSecurityGroup", name, changes.authorize)
    with suppress(NotFound):
        await _write(aws, "RevokeSecurityGroup", name, changes.revoke)


async def _write(
    aws: AwsClient, operation: str, group: str, rules: frozenset[Rule] | list[Rule]
) -> None:
    for direction in _DIRECTIONS:
        several = permissions(rules, direction)
        if several:
            await aws.call(
                "ec2", f"{operation}{direction.title()}", GroupId=group, IpPermissions=several
            )


def _allows(group: JsonObject, rule: Rule) -> bool:
    """Return whether a rule allows SSH from the bastion, even if it is wider than necessary."""
    return any(
        present.direction == INGRESS
        and present.peer in (rule.peer, EVERYWHERE, EVERYWHERE_6)
        and present.protocol in (ALL, TCP)
        and (present.ports is None or present.ports[0] <= SSH[0] <= present.ports[1])
        for present in rules_of(group)
    )
