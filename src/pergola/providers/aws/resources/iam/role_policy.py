"""The inline policy of the role of nodes."""

from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.errors import NotFound
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.iam.names import policy_name, role_name
from pergola.providers.aws.resources.iam.policies import role_policy, same_policy, text_of
from pergola.providers.aws.resources.removal import deletion_step, each, remove
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.waiting import wait_until
from pergola.providers.aws.state import ROLE_POLICY_NAME

NAME: Final = "ensure IAM role policy"
DELETE: Final = "delete IAM role policy"


def step(after: tuple[str, ...]) -> Step:
    """Return the step that writes the policy, unless an equivalent one exists."""
    return Step(name=NAME, decide=_decide, after=after)


def delete_step() -> Step:
    """Return the step that deletes the policy."""
    return deletion_step(DELETE, _ours, each(_delete), keys=(ROLE_POLICY_NAME,))


def _decide(work: Work) -> Decision:
    name, document = policy_name(work), role_policy(work.desired)
    present, why = work.snapshot.role_policy, f'policy "{name}" of the IAM role'
    write = partial(_write, work, name, document)
    if present is None:
        return Decision.creation(why, write)
    if not same_policy(present.get("PolicyDocument", present), document):
        return Decision.change(why, write, record={ROLE_POLICY_NAME: name})
    return Decision.keep(name, {ROLE_POLICY_NAME: name})


async def _write(work: Work, name: str, document: JsonObject) -> None:
    await wait_until(work, lambda: _put(work, name, document))
    work.snapshot.role_policy = {"PolicyName": name, "PolicyDocument": document}
    work.state.created(ROLE_POLICY_NAME, name)


async def _put(work: Work, name: str, document: JsonObject) -> bool | None:
    """Write the policy; None while the role is too new to be visible."""
    try:
        await work.aws.call(
            "iam",
            "PutRolePolicy",
            RoleName=role_name(work),
            PolicyName=name,
            PolicyDocument=text_of(document),
        )
    except NotFound:
        return None
    return True


def _ours(work: Work) -> list[str]:
    exists = work.snapshot.role_policy is not None or work.state.get(ROLE_POLICY_NAME)
    return [policy_name(work)] if exists else []


async def _delete(work: Work, name: str) -> None:
    role = role_name(work)
    await remove(work, "DeleteRolePolicy", service="iam", RoleName=role, PolicyName=name)
    work.snapshot.role_policy = None
