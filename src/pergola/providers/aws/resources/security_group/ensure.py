"""Creating and maintaining the security group of the nodes with its rules (spec 30 §6)."""

from dataclasses import replace
from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import filters_by
from pergola.cloud.errors import AlreadyExists, NotFound
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import byo_step_names as byo
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.adoption import known, refresh, remember, tag_changes
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.kinds import SECURITY_GROUP
from pergola.providers.aws.resources.ours import in_vpc, vpc_of
from pergola.providers.aws.resources.security_group.deletion import OURS
from pergola.providers.aws.resources.security_group.desired import (
    bastion_groups,
    desired_rules,
    zone_ranges,
)
from pergola.providers.aws.resources.security_group.rules import (
    ALL,
    EGRESS,
    EVERYWHERE,
    EVERYWHERE_6,
    FIELDS,
    INGRESS,
    Changes,
    Direction,
    Rule,
    compare,
    permissions,
    rules_of,
)
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.tags import specification
from pergola.providers.aws.resources.waiting import once_visible

NODES_GROUP: Final = "ensure nodes security group"
DESCRIPTION: Final = "Security group for nodes"
_OURS: Final = replace(OURS, accept=in_vpc)
_ROUNDS: Final = 3
_AUTHORIZE: Final = {
    INGRESS: "AuthorizeSecurityGroupIngress",
    EGRESS: "AuthorizeSecurityGroupEgress",
}
_REVOKE: Final = {INGRESS: "RevokeSecurityGroupIngress", EGRESS: "RevokeSecurityGroupEgress"}
_DIRECTIONS: Final[tuple[Direction, ...]] = (INGRESS, EGRESS)


def steps(desired: Desired, *, after: tuple[str, ...] = ()) -> list[Step]:
    """Return the step of the nodes' security group; skipped if it is user-provided (§6.2).

    Args:
        after: additional steps that must be done before.
    """
    own = desired.config.networks.nodes_security_group_id
    return [
        Step(
            name=NODES_GROUP,
            observe=partial(refresh, ours=_OURS),
            decide=_decide,
            after=(names.VPC, *_ranges_from(desired), *after),
            skip=f"security group {own} is user-provided, and managed by the user alone"
            if own
            else None,
        )
    ]


def _ranges_from(desired: Desired) -> tuple[str, ...]:
    """Return the steps after which the zones' ranges are known; those of the config always are."""
    config = desired.config
    if config.byo_subnets:
        return (byo.FIND,)
    if not desired.ipv6:
        return ()
    return (names.IPV6_BLOCK, *(names.subnets(zone.name) for zone in config.networks.zones))


def _decide(work: Work) -> Decision:
    name = known(work, _OURS)
    if name is None:
        new = f'security group "{_OURS.name(work)}" with its rules'
        return Decision.creation(new, partial(_create, work), record={_OURS.key: ""})
    record, retag = {_OURS.key: name}, tuple(tag_changes(work, _OURS, name).values())
    changes = _changes(work, name)
    if changes:
        said = [f"allow {rule}" for rule in sorted(changes.authorize, key=str)]
        said += [f"no longer allow {rule}" for rule in sorted(changes.revoke, key=str)]
        write = partial(_ensure_rules, work, name, changes)
        return Decision.change(f"{name}: {'; '.join(said)}", *retag, write, record=record)
    if retag:
        return Decision.change(f"tags of {name}", *retag, record=record)
    return Decision.keep(name, record)


async def _create(work: Work) -> None:
    vpc, name = vpc_of(work), _OURS.name(work)
    try:
        answer = await work.aws.call(
            "ec2",
            "CreateSecurityGroup",
            GroupName=name,
            Description=DESCRIPTION,
            VpcId=vpc,
            TagSpecifications=specification(SECURITY_GROUP.type, _OURS.tags(work)),
        )
    except AlreadyExists:
        await _describe_named(work, vpc, name)
    else:
        egress = permissions(_default_rules(work), EGRESS)
        named = {"GroupId": answer["GroupId"], "GroupName": name, "VpcId": vpc}
        remember(work, _OURS, {**named, "IpPermissions": [], "IpPermissionsEgress": egress})


def _default_rules(work: Work) -> list[Rule]:
    """Return the rules that AWS gives a new group: one for each IP family of the VPC."""
    has_ipv6 = bool((work.snapshot.vpc or {}).get("Ipv6CidrBlockAssociationSet"))
    peers = (EVERYWHERE, EVERYWHERE_6) if has_ipv6 else (EVERYWHERE,)
    return [Rule(EGRESS, ALL, None, peer) for peer in peers]


async def _describe_named(work: Work, vpc: str, name: str) -> None:
    """Describe the group with our name, created a moment ago and not visible before.

    Raises:
        ExtensionError: It is not ours.
    """
    found = await work.aws.pages(
        "ec2",
        "DescribeSecurityGroups",
        "SecurityGroups",
        Filters=filters_by({"vpc-id": vpc, "group-name": name}),
    )
    work.snapshot.security_groups |= {group["GroupId"]: group for group in found}
    if known(work, _OURS) is None:
        raise ExtensionError(
            f'VPC {vpc} has a security group "{name}" already, without the tag '
            f"{work.desired.cluster_tag}; delete or rename it",
            Code.CONFIGURATION_PROBLEM,
        )


def _changes(work: Work, name: str) -> Changes:
    ranges = zone_ranges(work.desired, work.state, work.snapshot)
    bastions = bastion_groups(work.desired, work.snapshot.security_groups)
    desired = desired_rules(work.desired, name, ranges)
    return compare(desired, work.snapshot.security_groups[name], keep=bastions)


async def _ensure_rules(work: Work, name: str, changes: Changes) -> None:
    """Authorize rules first, then revoke, so that no traffic is interrupted."""
    for left in reversed(range(_ROUNDS)):
        try:
            await _write_rules(work, name, changes)
        except (AlreadyExists, NotFound):
            # The snapshot is outdated: the rules were changed, or are not visible yet.
            if not left:
                raise
            await _read_again(work, name)
            changes = _changes(work, name)
        else:
            return


async def _write_rules(work: Work, name: str, changes: Changes) -> None:
    for operations, rules in ((_AUTHORIZE, changes.authorize), (_REVOKE, changes.revoke)):
        for direction in _DIRECTIONS:
            several = permissions(rules, direction)
            if several:
                await work.aws.call(
                    "ec2", operations[direction], GroupId=name, IpPermissions=several
                )
    _remember_rules(work.snapshot.security_groups[name], changes)


def _remember_rules(group: JsonObject, changes: Changes) -> None:
    """Store the current rules in the snapshot."""
    now = (rules_of(group) | changes.authorize) - changes.revoke
    for direction in _DIRECTIONS:
        group[FIELDS[direction]] = permissions(now, direction)


async def _read_again(work: Work, name: str) -> None:
    answer = await once_visible(work, "DescribeSecurityGroups", GroupIds=[name])
    work.snapshot.security_groups[name].update(answer["SecurityGroups"][0])
