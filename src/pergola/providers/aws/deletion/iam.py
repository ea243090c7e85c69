"""Removes what nodes may do in AWS: policy, instance profile and role (spec 30 §10.3).

They have no tags; their names are unique in the account. A creation that was killed may have left
them unknown to the state, so they are found by their names too.
"""

from typing import Final

from pergola.flow.picture import Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.deletion.removing import forget, note, remove
from pergola.providers.aws.step import Step, Work

ROLE_POLICY: Final = "delete IAM role policy"
INSTANCE_PROFILE: Final = "delete IAM instance profile"
ROLE: Final = "delete IAM role"
_SUFFIX: Final = "nodes"


def steps() -> list[Step]:
    """The steps of the nodes' identity, one after the other."""
    return [
        Step(name=ROLE_POLICY, plan=_plan_policy, ensure=_remove_policy),
        Step(
            name=INSTANCE_PROFILE, plan=_plan_profile, ensure=_remove_profile, after=(ROLE_POLICY,)
        ),
        Step(name=ROLE, plan=_plan_role, ensure=_remove_role, after=(INSTANCE_PROFILE,)),
    ]


def _plan_policy(work: Work) -> Note:
    return note([_policy(work)] if _has_policy(work) else [])


async def _remove_policy(work: Work) -> None:
    if _has_profile(work) and _holds_role(work):
        await remove(
            work,
            "RemoveRoleFromInstanceProfile",
            service="iam",
            InstanceProfileName=_profile(work),
            RoleName=_role(work),
        )
        if work.snapshot.instance_profile is not None:
            work.snapshot.instance_profile["Roles"] = []
    if _has_policy(work):
        await remove(
            work,
            "DeleteRolePolicy",
            service="iam",
            RoleName=_role(work),
            PolicyName=_policy(work),
        )
    work.snapshot.role_policy = None
    forget(work, keys.ROLE_POLICY_NAME)


def _plan_profile(work: Work) -> Note:
    return note([_profile(work)] if _has_profile(work) else [])


async def _remove_profile(work: Work) -> None:
    if _has_profile(work):
        await remove(
            work, "DeleteInstanceProfile", service="iam", InstanceProfileName=_profile(work)
        )
    work.snapshot.instance_profile = None
    forget(work, keys.INSTANCE_PROFILE_NAME)


def _plan_role(work: Work) -> Note:
    return note([_role(work)] if _has_role(work) else [])


async def _remove_role(work: Work) -> None:
    if _has_role(work):
        await remove(work, "DeleteRole", service="iam", RoleName=_role(work))
    work.snapshot.role = None
    forget(work, keys.ROLE_NAME, keys.ROLE_ARN)


def _has_policy(work: Work) -> bool:
    known = work.state.get(keys.ROLE_POLICY_NAME)
    return work.snapshot.role_policy is not None or known is not None


def _has_profile(work: Work) -> bool:
    known = work.state.get(keys.INSTANCE_PROFILE_NAME)
    return work.snapshot.instance_profile is not None or known is not None


def _has_role(work: Work) -> bool:
    return work.snapshot.role is not None or work.state.get(keys.ROLE_NAME) is not None


def _holds_role(work: Work) -> bool:
    """Whether the profile has the role, as far as it is known."""
    profile = work.snapshot.instance_profile
    roles = [role["RoleName"] for role in (profile or {}).get("Roles") or ()]
    return profile is None or _role(work) in roles


def _policy(work: Work) -> str:
    return work.state.get(keys.ROLE_POLICY_NAME) or work.wanted.name(_SUFFIX)


def _profile(work: Work) -> str:
    return work.state.get(keys.INSTANCE_PROFILE_NAME) or work.wanted.name(_SUFFIX)


def _role(work: Work) -> str:
    return work.state.get(keys.ROLE_NAME) or work.wanted.name(_SUFFIX)
