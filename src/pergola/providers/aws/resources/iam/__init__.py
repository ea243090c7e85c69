"""The identity of nodes in AWS: role, instance profile and inline policy (spec 30 §10.3).

policies          the documents, compared by meaning
role              the role: ensure, delete
instance_profile  the profile around it
role_policy       the policy in it

All three have the cluster's name, which is unique in the account. They have no tags: a run that was
killed may not have recorded them in the state, so they are also found by their names.
"""

from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources.iam import instance_profile, role, role_policy
from pergola.providers.aws.resources.step import Step

ROLE = role.NAME
INSTANCE_PROFILE = instance_profile.NAME
ROLE_POLICY = role_policy.NAME

__all__ = ["INSTANCE_PROFILE", "ROLE", "ROLE_POLICY", "delete_steps", "steps"]


def steps(desired: Desired) -> list[Step]:
    """Return the steps that create and maintain the identity; the same in every mode."""
    del desired
    return [
        role.step(),
        instance_profile.step(after=(ROLE,)),
        role_policy.step(after=(ROLE,)),
    ]


def delete_steps() -> list[Step]:
    """Return the steps that delete the identity, one after another."""
    return [
        role_policy.delete_step(),
        instance_profile.delete_step(after=(role_policy.DELETE,)),
        role.delete_step(after=(instance_profile.DELETE,)),
    ]
