"""The policy of an identity: the extension's permissions, and those of controllers."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from pergola.api.objects import JsonObject
from pergola.providers.aws.iam_policy.controllers import NAMES, PERMISSIONS, Condition
from pergola.providers.aws.iam_policy.extension import actions
from pergola.providers.aws.iam_policy.features import Feature, Mode

_READS: Final = ("Describe", "Get", "List")
_BOUNDED: Final = (
    "iam:CreateRole",
    "iam:DeleteRolePolicy",
    "iam:PutRolePermissionsBoundary",
    "iam:PutRolePolicy",
)
"""Actions that IAM can allow only for roles with a permissions boundary."""
_TAGGING: Final = ("ec2:CreateTags", "ec2:DeleteTags")
_TAG_KEYS: Final = (
    "Name",
    "gardener.cloud/managed-tag",
    "kubernetes.io/cluster/*",
    "kubernetes.io/role/elb",
    "kubernetes.io/role/internal-elb",
)
_NODES: Final = ("role/{names}-nodes", "instance-profile/{names}-nodes")


def iam_policy(
    mode: Mode,
    features: Collection[Feature] = (),
    *,
    names: str = "shoot--*",
    partition: str = "aws",
    boundary: str = "",
) -> JsonObject:
    """Return an IAM policy with exactly the permissions that are needed in a mode.

    Args:
        names: of the clusters, their technical ids, as IAM writes patterns.
        partition: of AWS, such as `aws-cn`.
        boundary: the ARN of the policy that must bound the roles of nodes. Without one, whoever has
            the permissions can give any others to a role, and take it.
    """
    if boundary:
        features = {*features, Feature.PERMISSIONS_BOUNDARY}
    if mode in PERMISSIONS:
        statements = [*_of_controllers(mode, features, names, partition)]
    else:
        needed = actions(mode, features)
        reads = [action for action in needed if _is_read(action)]
        writes = [action for action in needed if action not in reads]
        statements = [_statement("Reads", reads)]
        if mode is not Mode.CHECK:
            statements += _writing(mode, writes, names, partition, boundary)
    return {"Version": "2012-10-17", "Statement": statements}


def _writing(
    mode: Mode, writes: list[str], names: str, partition: str, boundary: str
) -> Iterator[JsonObject]:
    identity = [action for action in writes if action.startswith("iam:")]
    tagging = [action for action in writes if mode is Mode.BYO and action in _TAGGING]
    others = [action for action in writes if action not in identity and action not in tagging]
    yield _statement("Writes", others)
    if tagging:
        # Tags of others in users' networks cannot be touched, even by mistake.
        own = {"ForAllValues:StringLike": {"aws:TagKeys": list(_TAG_KEYS)}}
        yield {**_statement("WritesOwnTags", tagging), "Condition": own}
    nodes = [f"arn:{partition}:iam::*:{each.format(names=names)}" for each in _NODES]
    bounded = [action for action in identity if boundary and action in _BOUNDED]
    free = [action for action in identity if action not in bounded]
    yield _statement("WritesIdentityOfNodes", free, nodes)
    if bounded:
        within = {"StringEquals": {"iam:PermissionsBoundary": boundary}}
        yield {**_statement("WritesBoundedRolesOfNodes", bounded, nodes), "Condition": within}
    to_instances = {"StringLike": {"iam:PassedToService": "ec2.amazonaws.com*"}}
    passing = _statement("GivesRoleToNodes", ["iam:PassRole"], nodes[:1])
    yield {**passing, "Condition": to_instances}


def _of_controllers(
    mode: Mode, features: Collection[Feature], names: str, partition: str
) -> Iterator[JsonObject]:
    granted = [
        each for each in PERMISSIONS[mode] if each.feature is None or each.feature in features
    ]
    yield _statement("Reads", sorted(a for each in granted if not each.name for a in each.actions))
    for each in granted:
        if not each.name:
            continue
        statement = _statement(each.name, each.actions, [_arn(on, partition) for on in each.on])
        if each.other_than:
            statement["NotResource"] = statement.pop("Resource")
        if each.condition:
            statement["Condition"] = _condition(each.condition, names)
        yield statement


def _arn(on: str, partition: str) -> str:
    service, separator, kind = on.partition(":")
    if not separator:
        return on
    region = "" if service == "iam" else "*"
    return f"arn:{partition}:{service}:{region}:*:{kind}"


def _condition(condition: Condition, names: str) -> JsonObject:
    return {
        operator: {
            key: value.replace(NAMES, names) if isinstance(value, str) else value
            for key, value in expected.items()
        }
        for operator, expected in condition.items()
    }


def _statement(name: str, allowed: Iterable[str], on: Iterable[str] = ("*",)) -> JsonObject:
    return {
        "Sid": f"Pergola{name}",
        "Effect": "Allow",
        "Action": list(allowed),
        "Resource": list(on),
    }


def _is_read(action: str) -> bool:
    return action.partition(":")[2].startswith(_READS)
