"""Observing the identity of nodes, by the names in the state, or the cluster's name."""

from pergola.api.objects import JsonObject
from pergola.cloud.errors import NotFound
from pergola.providers.aws import state as keys
from pergola.providers.aws.resources.iam.names import SUFFIX
from pergola.providers.aws.resources.observation import Observation


async def observe_profile_and_role(seen: Observation) -> None:
    """Read the instance profile, and the role if the profile does not include it.

    The role in a profile has no permissions boundary, so it is read as well if one is configured.

    Raises:
        CloudError: AWS refused.
    """
    profile = _name(seen, keys.INSTANCE_PROFILE_NAME)
    role = _name(seen, keys.ROLE_NAME)
    found = await _get(seen, "GetInstanceProfile", InstanceProfileName=profile)
    seen.snapshot.instance_profile = found and found["InstanceProfile"]
    inside = (seen.snapshot.instance_profile or {}).get("Roles") or ()
    seen.snapshot.role = next((each for each in inside if each["RoleName"] == role), None)
    if seen.snapshot.role is None or seen.desired.permissions_boundary:
        answer = await _get(seen, "GetRole", RoleName=role)
        seen.snapshot.role = answer and answer["Role"]


async def observe_role_policy(seen: Observation) -> None:
    """Read the inline policy of the role.

    Raises:
        CloudError: AWS refused.
    """
    seen.snapshot.role_policy = await _get(
        seen,
        "GetRolePolicy",
        RoleName=_name(seen, keys.ROLE_NAME),
        PolicyName=_name(seen, keys.ROLE_POLICY_NAME),
    )


def _name(seen: Observation, key: str) -> str:
    return seen.state.get(key) or seen.desired.name(SUFFIX)


async def _get(seen: Observation, operation: str, **parameters: str) -> JsonObject | None:
    try:
        return await seen.aws.call("iam", operation, **parameters)
    except NotFound:
        return None
