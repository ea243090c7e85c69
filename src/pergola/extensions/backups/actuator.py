"""The provider-independent part of BackupEntries.

A subclass adds access to the backups: `etcd_data` for the etcd, and `delete_backups`.
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
"""The annotation that ends the grace period."""


class BackupEntryActuator(Actuator):
    """Maintains the etcd's Secret for its backups, and deletes the backups after a grace period.

    Attributes:
        grace: how long backups are kept after the deletion of their BackupEntry was requested; zero
            by default, because Gardener waits before it requests that.
    """

    kind = "BackupEntry"
    needs_cluster = False
    protects_secret = True
    follows_namespace = True
    grace: timedelta = timedelta()

    @classmethod
    def cluster_name(cls, key: Key) -> str:
        """Return the Cluster of a BackupEntry, which may be deleted long before it."""
        return entry_of(key.name).technical_id

    async def reconcile(self, context: Context, obj: JsonObject) -> Status | None:
        """Create or update the Secret for the etcd."""
        entry = entry_of(name_of(obj))
        await apply_etcd_secret(context.client, obj, entry, self.etcd_data(obj))
        return None

    async def delete(self, context: Context, obj: JsonObject) -> Status | None:
        """Delete the etcd's Secret at once, and its backups after the grace period.

        Raises:
            RequeueAfter: the grace period has not ended.
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
        """Delete as usual: a forced deletion of a Shoot also deletes its backups."""
        return await self.delete(context, obj)

    async def migrate(self, context: Context, obj: JsonObject) -> Status | None:
        """Leave the backups to the next seed, and the Secret to the deletion of its namespace."""
        return None

    def etcd_data(self, obj: JsonObject) -> Mapping[str, str]:
        """Return additional keys for the etcd's Secret, besides credentials and bucket."""
        del obj
        return {}

    @abstractmethod
    async def delete_backups(self, context: Context, obj: JsonObject, entry: Entry) -> None:
        """Delete everything below the entry's prefix, and return once it is gone."""


def _left(obj: JsonObject, grace: timedelta, now: datetime) -> timedelta:
    """Return the rest of the grace period."""
    since = read_time(deletion_timestamp_of(obj))
    if since is None or is_truthy(annotations_of(obj).get(FORCE_DELETION)):
        return timedelta()
    return since + grace - now
