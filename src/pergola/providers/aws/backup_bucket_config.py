"""`BackupBucketConfig` of `aws.provider.extensions.gardener.cloud/v1alpha1` (spec 31 §8)."""

from typing import Final

from pergola.api.objects import GroupVersionKind
from pergola.api.schema.declare import Value
from pergola.api.schema.duration import Duration
from pergola.providers.aws.config import GROUP

BACKUP_BUCKET_CONFIG: Final = GroupVersionKind(GROUP, "v1alpha1", "BackupBucketConfig")


class Immutability(Value):
    """The time during which no backup can be deleted or changed.

    No field has a valid default: the mode `compliance` cannot be undone.
    """

    retention_period: Duration = Duration()
    """The time, in whole days."""
    retention_type: str = ""
    """The object that it is a property of: `bucket`."""
    mode: str = ""
    """Whether it can be ended early: never (`compliance`), or by users with a certain permission
    (`governance`).
    """


class BackupBucketConfig(Value):
    """The configuration of a backup bucket."""

    immutability: Immutability | None = None
    """The time during which no backup can be deleted or changed; none if absent."""
