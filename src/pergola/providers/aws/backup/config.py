"""`BackupBucketConfig`: the owner's configuration of a backup bucket."""

from datetime import timedelta
from typing import Final, Literal

from pergola.api.objects import GroupVersionKind, JsonObject, map_at
from pergola.api.schema.declare import Value
from pergola.api.schema.duration import Duration
from pergola.extension_api.errors import configuration_problem
from pergola.extensions.provider_config import read_strict
from pergola.providers.aws.config import GROUP
from pergola.providers.aws.resources.bucket.lock import Retention

BACKUP_BUCKET_CONFIG: Final = GroupVersionKind(GROUP, "v1alpha1", "BackupBucketConfig")
_DAY: Final = timedelta(days=1)


class Immutability(Value):
    """The time during which no backup can be deleted or changed."""

    retention_period: Duration
    """The time, in whole days."""
    retention_type: Literal["bucket"]
    """The object that it is a property of."""
    mode: Literal["compliance", "governance"]
    """Whether it can be ended early: never, or by users with a certain permission.

    There is no default, because `compliance` cannot be undone.
    """


class BackupBucketConfig(Value):
    """The configuration of a backup bucket."""

    immutability: Immutability | None = None
    """The time during which no backup can be deleted or changed; none if absent."""


def retention_of(obj: JsonObject) -> Retention | None:
    """Return the retention that a BackupBucket requests for its objects.

    Raises:
        Malformed: its `providerConfig` is not a `BackupBucketConfig`.
        ExtensionError: the retention period is not in whole days.
    """
    config = read_strict(
        BackupBucketConfig, map_at(obj, "spec").get("providerConfig"), BACKUP_BUCKET_CONFIG
    )
    if config.immutability is None:
        return None
    period = config.immutability.retention_period
    days, rest = divmod(period, _DAY)
    if rest or days < 1:
        raise configuration_problem(
            f"spec.providerConfig.immutability.retentionPeriod is {period}: S3 retains objects for "
            "whole days, so set a multiple of 24h"
        )
    return Retention(config.immutability.mode.upper(), days)
