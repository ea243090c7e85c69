"""Backups in S3, for Gardens and Seeds: the extension kinds `BackupBucket` and `BackupEntry`.

    pergola extension run aws

A bucket that the actuator creates is kept in its desired state, and deleted with its content along
with the BackupBucket. A bucket that existed before is used, but neither changed nor deleted. For a
BackupEntry, only objects below its own prefix, `<technical id>--<uid>/`, are ever deleted: because
of the slash, an entry with a longer name keeps its objects.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from pergola.api.conditions import timestamp
from pergola.api.field_errors import sentence
from pergola.api.kinds import SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, name_of
from pergola.cloud.errors import CloudError
from pergola.extension_api.errors import Code, ExtensionError, RequeueAfter, configuration_problem
from pergola.extensions.actuator import Context, Status
from pergola.extensions.backups import BackupEntryActuator, Entry
from pergola.extensions.provider_config import read_strict
from pergola.providers.aws.access import AwsAccess
from pergola.providers.aws.actuator import AwsSettings, secret_of
from pergola.providers.aws.backup_bucket_config import BACKUP_BUCKET_CONFIG, BackupBucketConfig
from pergola.providers.aws.codes import explained
from pergola.providers.aws.config import GROUP
from pergola.providers.aws.resources.bucket.bucket import (
    Bucket,
    bucket_exists,
    bucket_of,
    create_bucket,
    delete_bucket,
)
from pergola.providers.aws.resources.bucket.lock import Retention, apply_lock, observe_lock
from pergola.providers.aws.resources.bucket.objects import Retained, delete_content, hide_content
from pergola.providers.aws.resources.bucket.settings import apply_settings, observe_settings
from pergola.providers.aws.validation.backup_bucket import check_backup_bucket
from pergola.providers.aws.warnings import warn
from pergola.providers.aws.workload_identity import has_workload_identity, role_of

_DAY: Final = timedelta(days=1)


def retention_of(obj: JsonObject) -> Retention | None:
    """Return the retention that a BackupBucket requests for its objects.

    Raises:
        Malformed: its `providerConfig` is not a `BackupBucketConfig`.
        ExtensionError: the retention is not one that S3 has.
    """
    value = map_at(obj, "spec").get("providerConfig")
    if value is None:
        return None
    config = read_strict(BackupBucketConfig, value, BACKUP_BUCKET_CONFIG, needs_type=True)
    if causes := [cause.under("spec.providerConfig") for cause in check_backup_bucket(config)]:
        raise configuration_problem(sentence(causes))
    if config.immutability is None:
        return None
    return Retention(config.immutability.mode.upper(), config.immutability.retention_period // _DAY)


BACKUP_BUCKET_STATE: Final = GroupVersionKind(GROUP, "v1alpha1", "BackupBucketState")
_CREATED: Final = "created"
_HALF: Final = 50
_SHORTEST_WAIT: Final = 60.0
_LONGEST_WAIT: Final = 3600.0
"""A user with the permission may end a retention in governance mode early."""


class AwsBackupBucket(AwsAccess):
    """Creates, maintains and deletes a bucket for backups, with the name of the BackupBucket."""

    kind = "BackupBucket"
    type = "aws"
    protects_secret = True

    async def reconcile(self, context: Context, obj: JsonObject) -> Status | None:
        """Create the bucket if it does not exist, and correct settings that differ.

        Raises:
            ExtensionError: the bucket belongs to another account, is in another region, or the
                config is not valid.
        """
        with explained():
            retention, is_ours = retention_of(obj), _is_ours(obj)
            async with self.aws(context, obj) as aws:
                bucket = await bucket_of(aws, name_of(obj))
                if not await bucket_exists(bucket):
                    is_ours = True
                    await _create(context, bucket, with_lock=retention is not None)
                warnings = await _ensure(bucket, retention, is_ours=is_ours)
        await warn(context.client, obj, warnings, context.clock)
        return {"state": _state(is_ours=is_ours)}

    async def delete(self, context: Context, obj: JsonObject) -> Status | None:
        """Delete the bucket with all backups in it, if it was created for the BackupBucket.

        Raises:
            RequeueAfter: object lock retains backups.
        """
        if not _is_ours(obj):
            kept = f"bucket {name_of(obj)} was not created for this BackupBucket, and is kept"
            await warn(context.client, obj, [kept], context.clock)
            return None

        async def report(deleted: int) -> None:
            await context.progress(_HALF, f"{deleted} object versions are deleted")

        # The status of an object that another implementation created changes with the deletion.
        await context.save({"state": _state(is_ours=True)})
        with explained():
            async with self.aws(context, obj) as aws:
                bucket = await bucket_of(aws, name_of(obj))
                if await bucket_exists(bucket):
                    try:
                        await delete_content(bucket, "", report)
                    except Retained as error:
                        raise _waiting(bucket, error, context.clock.now()) from error
                    await delete_bucket(bucket)
        return None


async def _create(context: Context, bucket: Bucket, *, with_lock: bool) -> None:
    """Create a bucket that is recorded as ours before, in case the process ends in between.

    After a refusal, it is not: users may create the bucket themselves then.
    """
    await context.save({"state": _state(is_ours=True)})
    try:
        await create_bucket(bucket, with_lock=with_lock)
    except (CloudError, ExtensionError) as error:
        if not (isinstance(error, CloudError) and error.may_have_happened):
            await context.save({"state": _state(is_ours=False)})
        raise


def _waiting(bucket: Bucket, error: Retained, now: datetime) -> ExtensionError:
    """Return the request to continue when the retention ends, or to look again before that."""
    text = f"bucket {bucket.name} cannot be deleted before the retention of its objects ends"
    if error.until is None:
        return RequeueAfter(_LONGEST_WAIT, ExtensionError(f"{text}: {error}", Code.DEPENDENCIES))
    left = (error.until - now).total_seconds()
    seconds = min(max(left, _SHORTEST_WAIT), _LONGEST_WAIT)
    until = f"{text}, at {timestamp(error.until)} or later"
    return RequeueAfter(seconds, ExtensionError(f"{until}: {error}", Code.DEPENDENCIES))


async def _ensure(bucket: Bucket, retention: Retention | None, *, is_ours: bool) -> list[str]:
    """Correct differences, and return sentences about those that may not be corrected."""
    plans = await observe_settings(bucket)
    if is_ours or retention is not None:
        await apply_lock(bucket, await observe_lock(bucket), retention)
    if is_ours:
        await apply_settings(bucket, plans)
        return []
    return [
        f"bucket {bucket.name} existed before and is not changed, but it lacks {setting.title}: "
        f"set it with {setting.put}"
        for setting in plans
    ]


def _is_ours(obj: JsonObject) -> bool:
    """Return whether the bucket was created for the BackupBucket.

    Other implementations keep no state, and delete every bucket that they reconciled successfully.
    """
    state = map_at(obj, "status", "state")
    if state:
        return state.get(_CREATED) is True
    last = map_at(obj, "status", "lastOperation")
    return last.get("state") == "Succeeded" or last.get("type") == "Reconcile"


def _state(*, is_ours: bool) -> JsonObject:
    return {
        "apiVersion": BACKUP_BUCKET_STATE.api_version,
        "kind": BACKUP_BUCKET_STATE.kind,
        _CREATED: is_ours,
    }


class AwsBackupEntry(BackupEntryActuator, AwsAccess):
    """Gives an etcd access to its backups in a bucket, and finally deletes them.

    Args:
        settings: read from the environment if None.
    """

    type = "aws"

    def __init__(self, settings: AwsSettings | None = None) -> None:
        super().__init__(settings)
        self.grace = self.settings.backup_grace

    async def reconcile(self, context: Context, obj: JsonObject) -> Status | None:
        """Create or update the Secret for the etcd."""
        with explained():
            return await super().reconcile(context, obj)

    def etcd_data(self, obj: JsonObject, credentials: JsonObject) -> Mapping[str, str]:
        """Return the region of the bucket, and the role of a workload identity."""
        region = {"region": str(map_at(obj, "spec").get("region") or "")}
        if not has_workload_identity(credentials):
            return region
        return {**region, "roleARN": role_of(credentials)}

    async def delete_backups(self, context: Context, obj: JsonObject, entry: Entry) -> None:
        """Delete everything below the entry's prefix; locked versions are hidden, and expire.

        Without the Secret with the credentials, the backups are kept, and an Event reports that.
        """
        bucket_name = str(map_at(obj, "spec").get("bucketName") or "")
        if not bucket_name:
            raise configuration_problem("spec.bucketName is empty: set the name of the bucket")
        secret: Key = secret_of(obj)
        if await context.client.find(SECRET, secret, metadata_only=True) is None:
            left = (
                f"the backups below {entry.prefix} in bucket {bucket_name} are kept, because "
                f"Secret {secret} with the credentials does not exist: delete them manually"
            )
            await warn(context.client, obj, [left], context.clock)
            return

        async def report(deleted: int) -> None:
            await context.progress(_HALF, f"{deleted} object versions are deleted")

        with explained():
            async with self.aws(context, obj) as aws:
                bucket = await bucket_of(aws, bucket_name)
                if not await bucket_exists(bucket):
                    return
                delete = hide_content if (await observe_lock(bucket)).is_enabled else delete_content
                await delete(bucket, entry.prefix, report)
