"""What BackupEntries of every provider have in common.

An author adds where the backups are: `etcd_data` for the etcd, and `delete_backups`.
"""

from abc import abstractmethod
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from pergola.api.conditions import timestamp
from pergola.api.marks import is_truthy
from pergola.api.objects import JsonObject, Key, annotations_of, deletion_timestamp_of, name_of
from pergola.extension_api.errors import ExtensionError, RequeueAfter
from pergola.extensions.actuator import Actuator, Context, Status
from pergola.extensions.backups.entry import Entry, entry_of
from pergola.extensions.backups.etcd_secret import apply_etcd_secret, delete_etcd_secret
from pergola.health.times import read_time

FORCE_DELETION: Final = "backupentry.core.gardener.cloud/force-deletion"
"""The annotation that ends the grace."""


class BackupEntryActuator(Actuator):
    """Keep the Secret of an etcd for its backups, and delete the backups after a grace.

    Attributes:
        grace: how long backups are kept after the deletion of their BackupEntry was requested; none
            by default, because Gardener waits before it requests that.
    """

    kind = "BackupEntry"
    needs_cluster = False
    protects_secret = True
    grace: timedelta = timedelta()

    @classmethod
    def cluster_name(cls, key: Key) -> str:
        """Return the Cluster of a BackupEntry, which may be gone long before it."""
        return entry_of(key.name).technical_id

    async def reconcile(self, context: Context, obj: JsonObject) -> Status | None:
        """Create and update the Secret of the etcd."""
        entry = entry_of(name_of(obj))
        await apply_etcd_secret(context.client, obj, entry, self.etcd_data(obj))
        return None

    async def delete(self, context: Context, obj: JsonObject) -> Status | None:
        """Delete the Secret of the etcd at once, and its backups after the grace.

        Raises:
            RequeueAfter: the grace has not ended.
        """
        entry = entry_of(name_of(obj))
        await delete_etcd_secret(context.client, obj, entry)
        left = _left(obj, self.grace, context.clock.now())
        if left > timedelta():
            until = timestamp(context.clock.now() + left)
            raise RequeueAfter(
                left.total_seconds(),
                ExtensionError(
                    f"the backups below {entry.prefix} are kept until {until}: to delete them now, "
                    f"annotate the BackupEntry with {FORCE_DELETION}=true"
                ),
            )
        await self.delete_backups(context, obj, entry)
        return None

    async def force_delete(self, context: Context, obj: JsonObject) -> Status | None:
        """Delete as always: a forced deletion of a Shoot also deletes its backups."""
        return await self.delete(context, obj)

    async def migrate(self, context: Context, obj: JsonObject) -> Status | None:
        """Leave the backups to the next seed, and the Secret to the end of its namespace."""
        return None

    def etcd_data(self, obj: JsonObject) -> Mapping[str, str]:
        """Return keys that the etcd's Secret has in addition to credentials and bucket."""
        del obj
        return {}

    @abstractmethod
    async def delete_backups(self, context: Context, obj: JsonObject, entry: Entry) -> None:
        """Delete everything below the entry's prefix, and return when it is gone."""


def _left(obj: JsonObject, grace: timedelta, now: datetime) -> timedelta:
    """Return how much of the grace is left."""
    since = read_time(deletion_timestamp_of(obj))
    if since is None or is_truthy(annotations_of(obj).get(FORCE_DELETION)):
        return timedelta()
    return since + grace - now
