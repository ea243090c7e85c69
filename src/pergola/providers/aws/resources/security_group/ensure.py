"""Creating and maintaining the security group of the nodes with its rules (spec 30 §6)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import filters_by, tags_of
from pergola.cloud.errors import AlreadyExists, NotFound
from pergola.extension_api.errors import Code, ExtensionError
from pergola.flow.picture import Fate, Note
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import byo_step_names as byo
from pergola.providers.aws.resources import step_names as names
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
from pergola.providers.aws.resources.tags import only_one, retag, specification
from pergola.providers.aws.resources.waiting import once_visible
from pergola.providers.aws.state import NODES_SECURITY_GROUP
from pergola.providers.aws.status import vpc_id

NODES_GROUP: Final = "ensure nodes security group"
DESCRIPTION: Final = "Security group for nodes"
_SUFFIX: Final = "nodes"
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
            plan=_plan,
            ensure=_ensure,
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


def _plan(work: Work) -> Note:
    group = _known(work)
    if group is None:
        return Note(Fate.CREATE, f'security group "{work.desired.name(_SUFFIX)}" with its rules')
    name = str(group["GroupId"])
    changes = _changes(work, group)
    if changes:
        said = [f"allow {rule}" for rule in sorted(changes.authorize, key=str)]
        said += [f"no longer allow {rule}" for rule in sorted(changes.revoke, key=str)]
        return Note(Fate.CHANGE, f"{name}: {'; '.join(said)}")
    if not work.desired.tags(_SUFFIX).items() <= tags_of(group).items():
        return Note(Fate.CHANGE, f"tags of {name}")
    return Note(Fate.KEEP, name)


async def _ensure(work: Work) -> None:
    group = _known(work) or await _asked_for(work) or await _created(work)
    name = str(group["GroupId"])
    work.state.created(NODES_SECURITY_GROUP, name)
    await retag(work, name, group, work.desired.tags(_SUFFIX))
    await _ensure_rules(work, group)


def _known(work: Work) -> JsonObject | None:
    """Return the group in the state or, without one, the group with its tags."""
    groups = work.snapshot.security_groups
    name = work.state.get(NODES_SECURITY_GROUP)
    if name in groups and groups[name].get("VpcId") == vpc_id(work.desired, work.state):
        return groups[name]
    found = only_one(work, groups, work.desired.tags(_SUFFIX))
    return groups[found] if found else None


async def _asked_for(work: Work) -> JsonObject | None:
    """Describe the group of the state, if it is too new for the snapshot; None if it is gone."""
    name = work.state.get(NODES_SECURITY_GROUP)
    if not name:
        return None
    try:
        answer = await once_visible(work, "DescribeSecurityGroups", GroupIds=[name])
    except NotFound:
        return None
    group: JsonObject = answer["SecurityGroups"][0]
    if group.get("VpcId") != vpc_id(work.desired, work.state):
        return None
    work.snapshot.security_groups[name] = group
    return group


async def _created(work: Work) -> JsonObject:
    vpc, tags = vpc_id(work.desired, work.state), work.desired.tags(_SUFFIX)
    try:
        answer = await work.aws.call(
            "ec2",
            "CreateSecurityGroup",
            GroupName=work.desired.name(_SUFFIX),
            Description=DESCRIPTION,
            VpcId=vpc,
            TagSpecifications=specification("security-group", tags),
        )
    except AlreadyExists:
        return await _of_that_name(work, vpc)
    name = str(answer["GroupId"])
    work.state.created(NODES_SECURITY_GROUP, name)
    group: JsonObject = {
        "GroupId": name,
        "GroupName": work.desired.name(_SUFFIX),
        "VpcId": vpc,
        "Tags": specification("security-group", tags)[0]["Tags"],
        "IpPermissions": [],
        "IpPermissionsEgress": permissions(_default_rules(work), EGRESS),
    }
    work.snapshot.security_groups[name] = group
    return group


def _default_rules(work: Work) -> list[Rule]:
    """Return the rules that AWS gives a new group: one for each IP family of the VPC."""
    has_ipv6 = bool((work.snapshot.vpc or {}).get("Ipv6CidrBlockAssociationSet"))
    peers = (EVERYWHERE, EVERYWHERE_6) if has_ipv6 else (EVERYWHERE,)
    return [Rule(EGRESS, ALL, None, peer) for peer in peers]


async def _of_that_name(work: Work, vpc: str) -> JsonObject:
    """Return the group with our name, if it is ours: created a moment ago, and not visible yet."""
    name = work.desired.name(_SUFFIX)
    found = await work.aws.pages(
        "ec2",
        "DescribeSecurityGroups",
        "SecurityGroups",
        Filters=filters_by({"vpc-id": vpc, "group-name": name}),
    )
    work.snapshot.security_groups |= {group["GroupId"]: group for group in found}
    ours = _known(work)
    if ours is None:
        raise ExtensionError(
            f'VPC {vpc} has a security group "{name}" already, without the tag '
            f"{work.desired.cluster_tag}; delete or rename it",
            Code.CONFIGURATION_PROBLEM,
        )
    return ours


def _changes(work: Work, group: JsonObject) -> Changes:
    name = str(group["GroupId"])
    ranges = zone_ranges(work.desired, work.state, work.snapshot)
    bastions = bastion_groups(work.desired, work.snapshot.security_groups)
    return compare(desired_rules(work.desired, name, ranges), group, keep=bastions)


async def _ensure_rules(work: Work, group: JsonObject) -> None:
    """Authorize rules first, then revoke, so that no traffic is interrupted."""
    for left in reversed(range(_ROUNDS)):
        try:
            await _write_rules(work, group)
        except (AlreadyExists, NotFound):
            # The snapshot is outdated: the rules were changed, or are not visible yet.
            if not left:
                raise
            await _read_again(work, group)
        else:
            return


async def _write_rules(work: Work, group: JsonObject) -> None:
    changes, name = _changes(work, group), str(group["GroupId"])
    for operations, rules in ((_AUTHORIZE, changes.authorize), (_REVOKE, changes.revoke)):
        for direction in _DIRECTIONS:
            several = permissions(rules, direction)
            if several:
                await work.aws.call(
                    "ec2", operations[direction], GroupId=name, IpPermissions=several
                )
    if changes:
        _remember(group, changes)


def _remember(group: JsonObject, changes: Changes) -> None:
    """Store the current rules in the snapshot."""
    now = (rules_of(group) | changes.authorize) - changes.revoke
    for direction in _DIRECTIONS:
        group[FIELDS[direction]] = permissions(now, direction)


async def _read_again(work: Work, group: JsonObject) -> None:
    answer = await once_visible(work, "DescribeSecurityGroups", GroupIds=[group["GroupId"]])
    group.update(answer["SecurityGroups"][0])
