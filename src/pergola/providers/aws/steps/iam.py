"""What nodes may do in AWS: their role, the policy in it and the profile around it (§10.3).

All three have the cluster's name, which is unique in the account; they are compared as what they
mean, not as text.
"""

from collections.abc import Iterator
from typing import Final

import orjson

from pergola.api.objects import JsonObject, JsonValue
from pergola.cloud.errors import AlreadyExists, NotFound, QuotaExceeded
from pergola.flow.picture import Fate, Note
from pergola.providers.aws.state import (
    INSTANCE_PROFILE_NAME,
    ROLE_ARN,
    ROLE_NAME,
    ROLE_POLICY_NAME,
)
from pergola.providers.aws.step import Step, Work
from pergola.providers.aws.steps.waiting import wait_until
from pergola.providers.aws.wanted import Wanted

ROLE: Final = "ensure IAM role"
INSTANCE_PROFILE: Final = "ensure IAM instance profile"
ROLE_POLICY: Final = "ensure IAM role policy"
_SUFFIX: Final = "nodes"
_VERSION: Final = "2012-10-17"
_PATH: Final = "/"
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
"""Instances may take the role."""


def steps(wanted: Wanted) -> list[Step]:
    """The steps of the nodes' identity; the same in every mode."""
    del wanted
    return [
        Step(name=ROLE, plan=_plan_role, ensure=_ensure_role),
        Step(name=INSTANCE_PROFILE, plan=_plan_profile, ensure=_ensure_profile, after=(ROLE,)),
        Step(name=ROLE_POLICY, plan=_plan_policy, ensure=_ensure_policy, after=(ROLE,)),
    ]


def role_policy(wanted: Wanted) -> JsonObject:
    """What nodes may do."""
    several: list[tuple[str, ...]] = [("ec2:DescribeInstances",)]
    several += [_EFS_ACTIONS] if wanted.config.wants_efs else []
    several += [_ECR_ACTIONS] if wanted.config.wants_ecr else []
    return {
        "Version": _VERSION,
        "Statement": [
            {"Effect": "Allow", "Action": list(actions), "Resource": ["*"]} for actions in several
        ],
    }


def same_policy(one: JsonValue, other: JsonValue) -> bool:
    """Whether two policies mean the same, however they are grouped, ordered and spelled."""
    return _meaning(one) == _meaning(other)


# The role


def _plan_role(work: Work) -> Note:
    role = work.snapshot.role
    if role is None:
        return Note(Fate.CREATE, f'IAM role "{work.wanted.name(_SUFFIX)}"')
    if not same_policy(role.get("AssumeRolePolicyDocument"), TRUST):
        return Note(Fate.CHANGE, f"who may take role {role['RoleName']}")
    return Note(Fate.KEEP, str(role["RoleName"]))


async def _ensure_role(work: Work) -> None:
    role = work.snapshot.role
    if role is None:
        role = await _create_role(work)
    name = str(role["RoleName"])
    work.state.created(ROLE_NAME, name)
    work.state.set(ROLE_ARN, str(role["Arn"]))
    if not same_policy(role.get("AssumeRolePolicyDocument"), TRUST):
        await work.aws.call(
            "iam", "UpdateAssumeRolePolicy", RoleName=name, PolicyDocument=_text(TRUST)
        )
        role["AssumeRolePolicyDocument"] = TRUST
    work.snapshot.role = role


async def _create_role(work: Work) -> JsonObject:
    name = work.state.get(ROLE_NAME) or work.wanted.name(_SUFFIX)
    try:
        answer = await work.aws.call(
            "iam",
            "CreateRole",
            RoleName=name,
            Path=_PATH,
            AssumeRolePolicyDocument=_text(TRUST),
        )
    except AlreadyExists:  # the snapshot is older
        answer = await wait_until(work, lambda: _get(work, "GetRole", RoleName=name))
    role: JsonObject = answer["Role"]
    return role


# The instance profile


def _plan_profile(work: Work) -> Note:
    profile = work.snapshot.instance_profile
    if profile is None:
        return Note(Fate.CREATE, f'IAM instance profile "{work.wanted.name(_SUFFIX)}"')
    name = str(profile["InstanceProfileName"])
    if _roles(profile) != [_role_name(work)]:
        return Note(Fate.CHANGE, f"the role in {name}")
    return Note(Fate.KEEP, name)


async def _ensure_profile(work: Work) -> None:
    profile, is_new = work.snapshot.instance_profile, False
    if profile is None:
        profile, is_new = await _create_profile(work), True
    name, role = str(profile["InstanceProfileName"]), _role_name(work)
    work.state.created(INSTANCE_PROFILE_NAME, name)
    for other in _roles(profile):
        if other != role:
            await work.aws.call(
                "iam", "RemoveRoleFromInstanceProfile", InstanceProfileName=name, RoleName=other
            )
    if role not in _roles(profile):
        await wait_until(work, lambda: _add_role(work, name, role))
        is_new = True
    if is_new:
        # Instances cannot be started with a profile that is not seen everywhere yet.
        profile = await wait_until(work, lambda: _complete(work, name, role))
    work.snapshot.instance_profile = profile


async def _create_profile(work: Work) -> JsonObject:
    name = work.state.get(INSTANCE_PROFILE_NAME) or work.wanted.name(_SUFFIX)
    try:
        answer = await work.aws.call(
            "iam", "CreateInstanceProfile", InstanceProfileName=name, Path=_PATH
        )
    except AlreadyExists:  # the snapshot is older
        answer = await wait_until(
            work, lambda: _get(work, "GetInstanceProfile", InstanceProfileName=name)
        )
    profile: JsonObject = answer["InstanceProfile"]
    return profile


async def _add_role(work: Work, profile: str, role: str) -> bool | None:
    """None as long as one of the two is too new to be seen."""
    try:
        await work.aws.call(
            "iam", "AddRoleToInstanceProfile", InstanceProfileName=profile, RoleName=role
        )
    except NotFound:
        return None
    except QuotaExceeded:  # a profile has one role: is it ours, unseen so far?
        if await _complete(work, profile, role) is None:
            raise
    return True


async def _complete(work: Work, name: str, role: str) -> JsonObject | None:
    answer = await _get(work, "GetInstanceProfile", InstanceProfileName=name)
    profile: JsonObject | None = (answer or {}).get("InstanceProfile")
    return profile if profile is not None and role in _roles(profile) else None


# The policy


def _plan_policy(work: Work) -> Note:
    name = _policy_name(work)
    if work.snapshot.role_policy is None:
        return Note(Fate.CREATE, f'policy "{name}" of the IAM role')
    if not _has_policy(work):
        return Note(Fate.CHANGE, f'policy "{name}" of the IAM role')
    return Note(Fate.KEEP, name)


async def _ensure_policy(work: Work) -> None:
    name, document = _policy_name(work), role_policy(work.wanted)
    if not _has_policy(work):
        await wait_until(work, lambda: _put_policy(work, name, document))
        work.snapshot.role_policy = {"PolicyName": name, "PolicyDocument": document}
    work.state.created(ROLE_POLICY_NAME, name)


async def _put_policy(work: Work, name: str, document: JsonObject) -> bool | None:
    """None as long as the role is too new to be seen."""
    try:
        await work.aws.call(
            "iam",
            "PutRolePolicy",
            RoleName=_role_name(work),
            PolicyName=name,
            PolicyDocument=_text(document),
        )
    except NotFound:
        return None
    return True


def _has_policy(work: Work) -> bool:
    present = work.snapshot.role_policy
    return present is not None and same_policy(
        present.get("PolicyDocument", present), role_policy(work.wanted)
    )


def _policy_name(work: Work) -> str:
    return work.state.get(ROLE_POLICY_NAME) or work.wanted.name(_SUFFIX)


def _role_name(work: Work) -> str:
    return work.state.get(ROLE_NAME) or work.wanted.name(_SUFFIX)


def _roles(profile: JsonObject) -> list[str]:
    return [str(role["RoleName"]) for role in profile.get("Roles") or ()]


async def _get(work: Work, operation: str, **parameters: str) -> JsonObject | None:
    try:
        return await work.aws.call("iam", operation, **parameters)
    except NotFound:
        return None


# Meaning


def _meaning(document: JsonValue) -> frozenset[bytes] | None:
    """The single permissions of a policy; None if it is no policy."""
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
    """A statement for each action and resource; a plain text is as good as a list of it."""
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


def _text(document: JsonObject) -> str:
    return orjson.dumps(document).decode()
