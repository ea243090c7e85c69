"""IAM policies of nodes, compared by meaning rather than as text (spec 30 §10.3)."""

from collections.abc import Iterator
from typing import Final

import orjson

from pergola.api.objects import JsonObject, JsonValue
from pergola.providers.aws.desired import Desired

_VERSION: Final = "2012-10-17"
_EFS_ACTIONS: Final = (
    "elasticfilesystem:DescribeAccessPoints",
    "elasticfilesystem:DescribeFileSystems",
    "elasticfilesystem:DescribeMountTargets",
    "elasticfilesystem:CreateAccessPoint",
    "elasticfilesystem:DeleteAccessPoint",
    "elasticfilesystem:TagResource",
    "ec2:DescribeAvailabilityZones",
)
_ECR_ACTIONS: Final = (
    "ecr:GetAuthorizationToken",
    "ecr:BatchCheckLayerAvailability",
    "ecr:GetDownloadUrlForLayer",
    "ecr:GetRepositoryPolicy",
    "ecr:DescribeRepositories",
    "ecr:ListImages",
    "ecr:BatchGetImage",
)
TRUST: Final[JsonObject] = {
    "Version": _VERSION,
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "ec2.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}
"""Instances may assume the role."""


def role_policy(desired: Desired) -> JsonObject:
    """Return the permissions of nodes."""
    several: list[tuple[str, ...]] = [("ec2:DescribeInstances",)]
    several += [_EFS_ACTIONS] if desired.config.wants_efs else []
    several += [_ECR_ACTIONS] if desired.config.wants_ecr else []
    return {
        "Version": _VERSION,
        "Statement": [
            {"Effect": "Allow", "Action": list(actions), "Resource": ["*"]} for actions in several
        ],
    }


def same_policy(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two policies are equivalent, regardless of grouping, order and spelling."""
    return _meaning(one) == _meaning(other)


def _meaning(document: JsonValue) -> frozenset[bytes] | None:
    """Return the individual permissions of a policy; None if it is not a policy."""
    if isinstance(document, str):
        try:
            document = orjson.loads(document)
        except orjson.JSONDecodeError:
            return None
    if not isinstance(document, dict):
        return None
    return frozenset(
        orjson.dumps(single, option=orjson.OPT_SORT_KEYS)
        for statement in _listed(document.get("Statement"))
        for single in _singles(statement)
    )


def _singles(statement: JsonValue) -> Iterator[JsonValue]:
    """Yield a statement for each action and resource; a string equals a list of one."""
    if not isinstance(statement, dict):
        yield statement
        return
    rest = {
        key: _sorted(value)
        for key, value in statement.items()
        if key not in ("Sid", "Action", "Resource")
    }
    for action in _listed(statement.get("Action")):
        for resource in _listed(statement.get("Resource")):
            yield {**rest, "Action": action, "Resource": resource}


def _sorted(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _sorted(_listed(each)) for key, each in value.items()}
    if isinstance(value, list):
        return sorted(value, key=orjson.dumps)
    return value


def _listed(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else [value]


def text_of(document: JsonObject) -> str:
    """Return a document in IAM's format."""
    return orjson.dumps(document).decode()
