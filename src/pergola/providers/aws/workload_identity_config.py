"""`WorkloadIdentityConfig` of `aws.provider.extensions.gardener.cloud/v1alpha1` (spec 31 §8)."""

from typing import Final

from msgspec import field

from pergola.api.objects import GroupVersionKind
from pergola.api.schema.declare import Value
from pergola.providers.aws.config import GROUP

WORKLOAD_IDENTITY: Final = GroupVersionKind(
    "security.gardener.cloud", "v1alpha1", "WorkloadIdentity"
)
WORKLOAD_IDENTITY_CONFIG: Final = GroupVersionKind(GROUP, "v1alpha1", "WorkloadIdentityConfig")


class WorkloadIdentityConfig(Value):
    """The role of a WorkloadIdentity in AWS."""

    role_arn: str = field(name="roleARN")
    """The ARN of the role."""
