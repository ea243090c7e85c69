"""The instance profile with the role of nodes."""

from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.errors import AlreadyExists, NotFound, QuotaExceeded
from pergola.flow.picture import Fate, Note
from pergola.providers.aws.resources.iam.names import (
    PATH,
    SUFFIX,
    get_or_none,
    profile_name,
    role_name,
    roles_in,
)
from pergola.providers.aws.resources.removal import delete_step as delete_step_of
from pergola.providers.aws.resources.removal import each, remove
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.waiting import wait_until
from pergola.providers.aws.state import INSTANCE_PROFILE_NAME

NAME: Final = "ensure IAM instance profile"
DELETE: Final = "delete IAM instance profile"


def step(after: tuple[str, ...]) -> Step:
    """Return the step that creates the profile with the role in it."""
    return Step(name=NAME, plan=_plan, ensure=_ensure, after=after)


def delete_step(after: tuple[str, ...]) -> Step:
    """Return the step that removes the role from the profile, and deletes the profile."""
    return delete_step_of(DELETE, _ours, each(_delete), keys=(INSTANCE_PROFILE_NAME,), after=after)


def _plan(work: Work) -> Note:
    profile = work.snapshot.instance_profile
    if profile is None:
        return Note(Fate.CREATE, f'IAM instance profile "{work.desired.name(SUFFIX)}"')
    name = str(profile["InstanceProfileName"])
    if roles_in(profile) != [role_name(work)]:
        return Note(Fate.CHANGE, f"the role in {name}")
    return Note(Fate.KEEP, name)


async def _ensure(work: Work) -> None:
    profile, is_new = work.snapshot.instance_profile, False
    if profile is None:
        profile, is_new = await _create(work), True
    name, role = str(profile["InstanceProfileName"]), role_name(work)
    work.state.created(INSTANCE_PROFILE_NAME, name)
    for other in roles_in(profile):
        if other != role:
            await work.aws.call(
                "iam", "RemoveRoleFromInstanceProfile", InstanceProfileName=name, RoleName=other
            )
    if role not in roles_in(profile):
        await wait_until(work, lambda: _add_role(work, name, role))
        is_new = True
    if is_new:
        # Instances cannot be started with a profile that is not visible everywhere yet.
        profile = await wait_until(work, lambda: _complete(work, name, role))
    work.snapshot.instance_profile = profile


async def _create(work: Work) -> JsonObject:
    name = work.state.get(INSTANCE_PROFILE_NAME) or work.desired.name(SUFFIX)
    try:
        answer = await work.aws.call(
            "iam", "CreateInstanceProfile", InstanceProfileName=name, Path=PATH
        )
    except AlreadyExists:  # the snapshot is older
        answer = await wait_until(
            work, lambda: get_or_none(work, "GetInstanceProfile", InstanceProfileName=name)
        )
    profile: JsonObject = answer["InstanceProfile"]
    return profile


async def _add_role(work: Work, profile: str, role: str) -> bool | None:
    """Add the role; None while one of the two is too new to be visible."""
    try:
        await work.aws.call(
            "iam", "AddRoleToInstanceProfile", InstanceProfileName=profile, RoleName=role
        )
    except NotFound:
        return None
    except QuotaExceeded:  # a profile has one role: is it ours, but not visible before?
        if await _complete(work, profile, role) is None:
            raise
    return True


async def _complete(work: Work, name: str, role: str) -> JsonObject | None:
    answer = await get_or_none(work, "GetInstanceProfile", InstanceProfileName=name)
    profile: JsonObject | None = (answer or {}).get("InstanceProfile")
    return profile if profile is not None and role in roles_in(profile) else None


def _ours(work: Work) -> list[str]:
    exists = work.snapshot.instance_profile is not None or work.state.get(INSTANCE_PROFILE_NAME)
    return [profile_name(work)] if exists else []


async def _delete(work: Work, name: str) -> None:
    """Delete a profile, which must be empty."""
    profile, role = work.snapshot.instance_profile, role_name(work)
    delete = partial(remove, work, service="iam", InstanceProfileName=name)
    if profile is None or role in roles_in(profile):
        await delete("RemoveRoleFromInstanceProfile", RoleName=role)
    await delete("DeleteInstanceProfile")
    work.snapshot.instance_profile = None
