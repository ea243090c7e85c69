"""Names of the nodes' identity: those in the state, or the cluster's name."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.errors import NotFound
from pergola.providers.aws import state as keys
from pergola.providers.aws.resources.step import Work
from pergola.providers.aws.state import (
    ROLE_NAME,
    ROLE_POLICY_NAME,
)

SUFFIX: Final = "nodes"
PATH: Final = "/"


def policy_name(work: Work) -> str:
    """Return the name of the inline policy."""
    return work.state.get(ROLE_POLICY_NAME) or work.desired.name(SUFFIX)


def role_name(work: Work) -> str:
    """Return the name of the role."""
    return work.state.get(ROLE_NAME) or work.desired.name(SUFFIX)


def roles_in(profile: JsonObject) -> list[str]:
    """Return the names of the roles in an instance profile."""
    return [str(role["RoleName"]) for role in profile.get("Roles") or ()]


async def get_or_none(work: Work, operation: str, **parameters: str) -> JsonObject | None:
    """Return IAM's answer, or None if the object does not exist."""
    try:
        return await work.aws.call("iam", operation, **parameters)
    except NotFound:
        return None


def profile_name(work: Work) -> str:
    """Return the name of the instance profile."""
    return work.state.get(keys.INSTANCE_PROFILE_NAME) or work.desired.name(SUFFIX)
