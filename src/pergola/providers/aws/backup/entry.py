"""The BackupEntry actuator for S3.

    pergola extension run aws

Only objects below the entry's own prefix, `<technical id>--<uid>/`, are ever deleted. Because of
the slash, an entry with a longer name keeps its objects.
"""

from collections.abc import Mapping
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at
from pergola.extension_api.errors import configuration_problem
from pergola.extensions.actuator import Context, Status
from pergola.extensions.backups import BackupEntryActuator, Entry
from pergola.providers.aws.access import AwsAccess
from pergola.providers.aws.actuator import AwsSettings, secret_of
from pergola.providers.aws.codes import explained
from pergola.providers.aws.resources.bucket.bucket import bucket_exists, bucket_of
from pergola.providers.aws.resources.bucket.lock import observe_lock
from pergola.providers.aws.resources.bucket.objects import delete_content, hide_content
from pergola.providers.aws.warnings import warn

_HALF: Final = 50


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

    def etcd_data(self, obj: JsonObject) -> Mapping[str, str]:
        """Return the region of the bucket."""
        return {"region": str(map_at(obj, "spec").get("region") or "")}

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
