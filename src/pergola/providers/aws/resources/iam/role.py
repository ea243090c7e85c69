"""The IAM role of nodes."""

from typing import Final

from pergola.api.objects import JsonObject, map_at
from pergola.cloud.errors import AlreadyExists
from pergola.flow.picture import Fate, Note
from pergola.providers.aws.resources.iam.names import PATH, SUFFIX, get_or_none, role_name
from pergola.providers.aws.resources.iam.policies import TRUST, same_policy, text_of
from pergola.providers.aws.resources.removal import delete_step as delete_step_of
from pergola.providers.aws.resources.removal import each, remove
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.waiting import wait_until
from pergola.providers.aws.state import (
    ROLE_ARN,
    ROLE_NAME,
)

NAME: Final = "ensure IAM role"
DELETE: Final = "delete IAM role"


def step() -> Step:
    """Return the step that creates the role, and maintains its trust policy and boundary."""
    return Step(name=NAME, plan=_plan, ensure=_ensure)


def delete_step(after: tuple[str, ...]) -> Step:
    """Return the step that deletes the role."""
    return delete_step_of(DELETE, _ours, each(_delete), keys=(ROLE_NAME, ROLE_ARN), after=after)


def _plan(work: Work) -> Note:
    role = work.snapshot.role
    if role is None:
        return Note(Fate.CREATE, f'IAM role "{work.desired.name(SUFFIX)}"')
    if not same_policy(role.get("AssumeRolePolicyDocument"), TRUST):
        return Note(Fate.CHANGE, f"who may take role {role['RoleName']}")
    if _lacks_boundary(work, role):
        return Note(Fate.CHANGE, f"the permissions boundary of role {role['RoleName']}")
    return Note(Fate.KEEP, str(role["RoleName"]))


async def _ensure(work: Work) -> None:
    role = work.snapshot.role
    if role is None:
        role = await _create(work)
    name = str(role["RoleName"])
    work.state.created(ROLE_NAME, name)
    work.state.set(ROLE_ARN, str(role["Arn"]))
    if not same_policy(role.get("AssumeRolePolicyDocument"), TRUST):
        await work.aws.call(
            "iam", "UpdateAssumeRolePolicy", RoleName=name, PolicyDocument=text_of(TRUST)
        )
        role["AssumeRolePolicyDocument"] = TRUST
    if _lacks_boundary(work, role):
        boundary = work.desired.permissions_boundary
        await work.aws.call(
            "iam", "PutRolePermissionsBoundary", RoleName=name, PermissionsBoundary=boundary
        )
        role["PermissionsBoundary"] = {"PermissionsBoundaryArn": boundary}
    work.snapshot.role = role


def _lacks_boundary(work: Work, role: JsonObject) -> bool:
    """Return whether the role lacks the boundary; one of others stays if none is configured."""
    boundary = work.desired.permissions_boundary
    current = map_at(role, "PermissionsBoundary").get("PermissionsBoundaryArn")
    return bool(boundary) and current != boundary


async def _create(work: Work) -> JsonObject:
    name = work.state.get(ROLE_NAME) or work.desired.name(SUFFIX)
    boundary = work.desired.permissions_boundary
    try:
        answer = await work.aws.call(
            "iam",
            "CreateRole",
            RoleName=name,
            Path=PATH,
            AssumeRolePolicyDocument=text_of(TRUST),
            **({"PermissionsBoundary": boundary} if boundary else {}),
        )
    except AlreadyExists:  # the snapshot is older
        answer = await wait_until(work, lambda: get_or_none(work, "GetRole", RoleName=name))
    role: JsonObject = answer["Role"]
    return role


def _ours(work: Work) -> list[str]:
    exists = work.snapshot.role is not None or work.state.get(ROLE_NAME) is not None
    return [role_name(work)] if exists else []


async def _delete(work: Work, name: str) -> None:
    await remove(work, "DeleteRole", service="iam", RoleName=name)
    work.snapshot.role = None
