"""Security groups that Kubernetes created for load balancers (spec 30 §9.1).

AWS does not delete a group that a rule of another one names. Such rules are revoked first, if they
are in groups of this cluster. Rules in the user's groups stay, and are reported.
"""

from collections.abc import Collection, Iterator
from typing import Final

import orjson

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.cloud.errors import NotFound
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws.resources.decision import all_done
from pergola.providers.aws.resources.ours import in_vpc
from pergola.providers.aws.resources.removal import is_of_cloud_controller, remove
from pergola.providers.aws.resources.security_group.deletion import (
    groups_of_nodes,
    groups_to_delete,
)
from pergola.providers.aws.resources.step import Work

_POLLS: Final = 48
"""Network interfaces of load balancers stay for minutes; this covers 4 of the step's 5 minutes."""
_DEFAULT: Final = "default"
_RULES: Final = (
    ("IpPermissions", "RevokeSecurityGroupIngress", "revoke-security-group-ingress"),
    ("IpPermissionsEgress", "RevokeSecurityGroupEgress", "revoke-security-group-egress"),
)


async def remove_all(work: Work) -> None:
    """Delete the groups with exactly the cluster's tag, except for those of nodes.

    Raises:
        ExtensionError: rules of a user's group name one of them.
    """
    doomed = sorted(_groups(work))
    for group in work.snapshot.security_groups.values():
        if not _is_of_user(work, group, doomed):
            await _revoke(work, group, doomed)
    named = {name: hints for name in doomed if (hints := list(_hints(work, name, doomed)))}
    await all_done(*(_remove(work, name) for name in doomed if name not in named))
    if named:
        commands = [hint for hints in named.values() for hint in hints]
        raise ExtensionError(
            f"security groups of load balancers, {', '.join(named)}, cannot be deleted as long as "
            f"rules of yours name them; remove these rules: {'; '.join(commands)}",
            Code.DEPENDENCIES,
        )


def _groups(work: Work) -> Iterator[str]:
    kept = groups_of_nodes(work)
    for name, group in work.snapshot.security_groups.items():
        is_owned = is_of_cloud_controller(tags_of(group).get(work.desired.cluster_tag))
        is_special = name in kept or group.get("GroupName") == _DEFAULT
        if is_owned and in_vpc(work, group) and not is_special:
            yield name


def _is_of_user(work: Work, group: JsonObject, doomed: Collection[str]) -> bool:
    """Return whether a group is the user's, and must not change although it may have our tag."""
    return group["GroupId"] not in {*groups_to_delete(work), *doomed}


async def _remove(work: Work, name: str) -> None:
    await remove(work, "DeleteSecurityGroup", polls=_POLLS, GroupId=name)
    work.snapshot.security_groups.pop(name, None)


async def _revoke(work: Work, group: JsonObject, doomed: Collection[str]) -> None:
    """Revoke the rules of a group that name groups to delete."""
    for rules, operation, _ in _RULES:
        naming = _naming(group.get(rules) or [], doomed)
        if naming:
            try:
                await work.aws.call(
                    "ec2", operation, GroupId=group["GroupId"], IpPermissions=naming
                )
            except NotFound:  # the group or the rule
                continue


def _naming(rules: list[JsonObject], doomed: Collection[str]) -> list[JsonObject]:
    """Return the parts of rules that name certain groups."""
    return [
        {
            **{key: rule[key] for key in ("IpProtocol", "FromPort", "ToPort") if key in rule},
            "UserIdGroupPairs": [{"GroupId": pair["GroupId"]} for pair in pairs],
        }
        for rule in rules
        if (
            pairs := [
                pair for pair in rule.get("UserIdGroupPairs") or () if pair.get("GroupId") in doomed
            ]
        )
    ]


def _hints(work: Work, name: str, doomed: Collection[str]) -> Iterator[str]:
    """Yield the commands that revoke the user's rules about a group."""
    for other, group in work.snapshot.security_groups.items():
        if not _is_of_user(work, group, doomed):
            continue
        for rules, _, command in _RULES:
            naming = _naming(group.get(rules) or [], (name,))
            if naming:
                rule = orjson.dumps(naming).decode()
                yield f"aws ec2 {command} --group-id {other} --ip-permissions '{rule}'"
