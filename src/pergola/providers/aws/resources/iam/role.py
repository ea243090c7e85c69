"""The IAM role of nodes."""

from functools import partial
from typing import Final

from pergola.api.objects import JsonObject, map_at
from pergola.cloud.errors import AlreadyExists
from pergola.providers.aws.resources.decision import Call, Decision
from pergola.providers.aws.resources.iam.names import PATH, SUFFIX, get_or_none, role_name
from pergola.providers.aws.resources.iam.policies import TRUST, same_policy, text_of
from pergola.providers.aws.resources.removal import deletion_step, each, remove
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.waiting import wait_until
from pergola.providers.aws.state import ROLE_ARN, ROLE_NAME

NAME: Final = "ensure IAM role"
DELETE: Final = "delete IAM role"


def step() -> Step:
    """Return the step that creates the role, and maintains its trust policy and boundary."""
    return Step(name=NAME, decide=_decide)


def delete_step(after: tuple[str, ...]) -> Step:
    """Return the step that deletes the role."""
    return deletion_step(DELETE, _ours, each(_delete), keys=(ROLE_NAME, ROLE_ARN), after=after)


def _decide(work: Work) -> Decision:
    role = work.snapshot.role
    if role is None:
        return Decision.creation(f'IAM role "{work.desired.name(SUFFIX)}"', partial(_create, work))
    name = str(role["RoleName"])
    changes: dict[str, Call] = {}
    if not same_policy(role.get("AssumeRolePolicyDocument"), TRUST):
        changes["who may take role"] = partial(_set_trust, work, role)
    if _lacks_boundary(work, role):
        changes["the permissions boundary of role"] = partial(_set_boundary, work, role)
    record = {ROLE_NAME: name, ROLE_ARN: str(role["Arn"])}
    if not changes:
        return Decision.keep(name, record)
    return Decision.change(f"{' and '.join(changes)} {name}", *changes.values(), record=record)


async def _set_trust(work: Work, role: JsonObject) -> None:
    document = text_of(TRUST)
    await work.aws.call(
        "iam", "UpdateAssumeRolePolicy", RoleName=role["RoleName"], PolicyDocument=document
    )
    role["AssumeRolePolicyDocument"] = TRUST


async def _set_boundary(work: Work, role: JsonObject) -> None:
    boundary = work.desired.permissions_boundary
    await work.aws.call(
        "iam",
        "PutRolePermissionsBoundary",
        RoleName=role["RoleName"],
        PermissionsBoundary=boundary,
    )
    role["PermissionsBoundary"] = {"PermissionsBoundaryArn": boundary}


def _lacks_boundary(work: Work, role: JsonObject) -> bool:
    """Return whether the role lacks the boundary; one of others stays if none is configured."""
    boundary = work.desired.permissions_boundary
    current = map_at(role, "PermissionsBoundary").get("PermissionsBoundaryArn")
    return bool(boundary) and current != boundary


async def _create(work: Work) -> None:
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
    work.snapshot.role = answer["Role"]
    work.state.created(ROLE_NAME, name)


def _ours(work: Work) -> list[str]:
    exists = work.snapshot.role is not None or work.state.get(ROLE_NAME) is not None
    return [role_name(work)] if exists else []


async def _delete(work: Work, name: str) -> None:
    await remove(work, "DeleteRole", service="iam", RoleName=name)
    work.snapshot.role = None
