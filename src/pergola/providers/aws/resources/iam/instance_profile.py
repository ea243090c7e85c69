"""The instance profile with the role of nodes."""

from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.errors import AlreadyExists, NotFound, QuotaExceeded
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.iam.names import (
    PATH,
    SUFFIX,
    get_or_none,
    profile_name,
    role_name,
    roles_in,
)
from pergola.providers.aws.resources.removal import deletion_step, each, remove
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.waiting import wait_until
from pergola.providers.aws.state import INSTANCE_PROFILE_NAME

NAME: Final = "ensure IAM instance profile"
DELETE: Final = "delete IAM instance profile"


def step(after: tuple[str, ...]) -> Step:
    """Return the step that creates the profile with the role in it."""
    return Step(name=NAME, decide=_decide, after=after)


def delete_step(after: tuple[str, ...]) -> Step:
    """Return the step that removes the role from the profile, and deletes the profile."""
    return deletion_step(DELETE, _ours, each(_delete), keys=(INSTANCE_PROFILE_NAME,), after=after)


def _decide(work: Work) -> Decision:
    profile, role = work.snapshot.instance_profile, role_name(work)
    if profile is None:
        new = f'IAM instance profile "{work.desired.name(SUFFIX)}"'
        return Decision.creation(new, partial(_create, work))
    name, roles = str(profile["InstanceProfileName"]), roles_in(profile)
    record = {INSTANCE_PROFILE_NAME: name}
    if roles == [role]:
        return Decision.keep(name, record)
    calls = [partial(_remove_role, work, name, other) for other in roles if other != role]
    if role not in roles:
        calls.append(partial(_add_role, work, name, role))
    return Decision.change(f"the role in {name}", *calls, record=record)


async def _create(work: Work) -> None:
    name = profile_name(work)
    try:
        answer = await work.aws.call(
            "iam", "CreateInstanceProfile", InstanceProfileName=name, Path=PATH
        )
    except AlreadyExists:  # the snapshot is older
        answer = await wait_until(
            work, lambda: get_or_none(work, "GetInstanceProfile", InstanceProfileName=name)
        )
    work.snapshot.instance_profile = answer["InstanceProfile"]
    work.state.created(INSTANCE_PROFILE_NAME, name)


async def _remove_role(work: Work, name: str, role: str) -> None:
    await work.aws.call(
        "iam", "RemoveRoleFromInstanceProfile", InstanceProfileName=name, RoleName=role
    )


async def _add_role(work: Work, name: str, role: str) -> None:
    """Add the role, and wait: instances need a profile that is visible everywhere."""
    await wait_until(work, lambda: _put_role(work, name, role))
    work.snapshot.instance_profile = await wait_until(work, lambda: _complete(work, name, role))


async def _put_role(work: Work, profile: str, role: str) -> bool | None:
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
