"""BackupEntries of any provider: their names, the etcd's Secret, the grace period of a deletion.

The name of a BackupEntry determines everything else about it. A subclass of the actuator adds
access to the backups: `etcd_data` for the etcd, and `delete_backups`.
"""

from abc import abstractmethod
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple

from pergola.api.conditions import timestamp
from pergola.api.kinds import NAMESPACE, SECRET
from pergola.api.marks import is_truthy
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    labels_of,
    map_at,
    name_of,
    uid_of,
)
from pergola.extension_api.errors import ExtensionError, RequeueAfter
from pergola.extensions.actuator import Actuator, Context, Status
from pergola.health.times import read_time
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.runtime.logging import get_logger

_SOURCE: Final = "source-"
_SECRET: Final = "etcd-backup"  # noqa: S105 - a name
_SEPARATOR: Final = "--"


class Entry(NamedTuple):
    """A BackupEntry, identified by its name `<technical id>--<uid>`.

    Attributes:
        name: without the prefix of source entries.
        is_source: whether it refers to backups that a control plane left in a bucket, while they
            are copied; its name begins with `source-`.
    """

    name: str
    is_source: bool = False

    @property
    def technical_id(self) -> str:
        """The namespace of the etcd: that of a control plane, or `garden`."""
        found, separator, _ = self.name.rpartition(_SEPARATOR)
        return found if separator else self.name

    @property
    def prefix(self) -> str:
        """The prefix of all its objects in the bucket; it is not a prefix of any other entry's."""
        return f"{self.name}/"

    @property
    def secret(self) -> Key:
        """The Secret from which the etcd reads the bucket and the credentials."""
        return Key(self.technical_id, f"{_SOURCE if self.is_source else ''}{_SECRET}")


def entry_of(name: str) -> Entry:
    """Return the entry for the name of a BackupEntry."""
    return Entry(name.removeprefix(_SOURCE), name.startswith(_SOURCE))


log = get_logger("extension")

CREATED_BY: Final = "backup.gardener.cloud/created-by"
"""The annotation with the BackupEntry that created the Secret."""
BUCKET_NAME: Final = "bucketName"
_PURPOSE: Final = "security.gardener.cloud/purpose"
_REQUESTOR: Final = "workload-identity-token-requestor"
_IDENTITY: Final = "workloadidentity.security.gardener.cloud/"
_RENEWED: Final = f"{_IDENTITY}token-renew-timestamp"
_COPIED: Final = (f"{_IDENTITY}name", f"{_IDENTITY}namespace", f"{_IDENTITY}context-object")
_ANNOTATIONS: Final = (CREATED_BY, _RENEWED, *_COPIED)
_LABELS: Final = (_PURPOSE, f"{_IDENTITY}provider")
_CONFIG, _TOKEN = "config", "token"


async def apply_etcd_secret(
    client: Client,
    obj: JsonObject,
    entry: Entry,
    more: Callable[[JsonObject], Mapping[str, str]],
) -> None:
    """Create or change the Secret; write nothing if nothing differs.

    Do nothing if the etcd's namespace does not exist or is being deleted.

    Args:
        obj: the BackupEntry.
        more: returns keys in addition to the credentials, from the Secret with these.

    Raises:
        ExtensionError: the Secret with the credentials does not exist.
        KubeError: the API server refused.
    """
    namespace = await client.find(NAMESPACE, Key("", entry.secret.namespace), metadata_only=True)
    if namespace is None or deletion_timestamp_of(namespace) is not None:
        return
    credentials = await _credentials(client, obj)
    added = more(credentials)
    live = await client.find(SECRET, entry.secret)
    if live is None:
        metadata = {"name": entry.secret.name, "namespace": entry.secret.namespace}
        new = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata}
        await client.create(_with(new, obj, credentials, added))
        return
    desired = _with(live, obj, credentials, added)
    if desired != live:
        # Replace it as a whole: keys that the credentials lost must disappear as well.
        await client.update(desired)


async def delete_etcd_secret(client: Client, obj: JsonObject, entry: Entry) -> None:
    """Delete the Secret, unless another BackupEntry created it.

    Raises:
        KubeError: the API server refused.
    """
    live = await client.find(SECRET, entry.secret, metadata_only=True)
    if live is None:
        return
    created_by = annotations_of(live).get(CREATED_BY, name_of(obj))
    if created_by != name_of(obj):
        log.info("the Secret of the etcd is kept", secret=str(entry.secret), created_by=created_by)
        return
    try:
        await client.delete(SECRET, entry.secret, uid=uid_of(live))
    except NotFound:  # it was deleted in the meantime
        return


def _with(
    secret: JsonObject, obj: JsonObject, credentials: JsonObject, more: Mapping[str, str]
) -> JsonObject:
    """Return a Secret with the desired data and metadata; labels and annotations of others stay.

    For a workload identity, only its config is copied: a controller writes the token.
    """
    bucket = str(map_at(obj, "spec").get(BUCKET_NAME) or "")
    data = map_at(credentials, "data")
    annotations, labels = {CREATED_BY: name_of(obj)}, dict[str, str]()
    if labels_of(credentials).get(_PURPOSE) == _REQUESTOR:
        before = map_at(secret, "data")
        data = {key: data[key] for key in (_CONFIG,) if key in data}
        data |= {key: before[key] for key in (_TOKEN,) if key in before}
        annotations |= _chosen(annotations_of(credentials), _COPIED)
        annotations |= _chosen(annotations_of(secret), (_RENEWED,))
        labels = _chosen(labels_of(credentials), _LABELS)
    own = {key: _encoded(value) for key, value in {BUCKET_NAME: bucket, **more}.items()}
    metadata = {
        **map_at(secret, "metadata"),
        "annotations": _replaced(annotations_of(secret), _ANNOTATIONS, annotations),
    }
    if kept := _replaced(labels_of(secret), _LABELS, labels):
        metadata["labels"] = kept
    else:
        metadata.pop("labels", None)
    return {**secret, "metadata": metadata, "data": {**data, **own}}


def _chosen(marks: Mapping[str, str], keys: Collection[str]) -> dict[str, str]:
    return {key: value for key, value in marks.items() if key in keys}


def _replaced(
    marks: Mapping[str, str], keys: Collection[str], new: Mapping[str, str]
) -> dict[str, str]:
    return {key: value for key, value in marks.items() if key not in keys} | dict(new)


async def _credentials(client: Client, obj: JsonObject) -> JsonObject:
    reference = map_at(obj, "spec", "secretRef")
    key = Key(str(reference.get("namespace") or ""), str(reference.get("name") or ""))
    found = await client.find(SECRET, key)
    if found is None:
        raise ExtensionError(
            f"Secret {key}, which should contain the credentials of backups, does not exist; "
            "create it"
        )
    return found


def _encoded(value: str) -> str:
    return b64encode(value.encode()).decode()


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
        more = partial(self.etcd_data, obj)
        await apply_etcd_secret(context.client, obj, entry, more)
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

    def etcd_data(self, obj: JsonObject, credentials: JsonObject) -> Mapping[str, str]:
        """Return additional keys for the etcd's Secret, besides credentials and bucket.

        Args:
            credentials: the Secret with the credentials. Of a workload identity, the etcd's Secret
                gets only its configuration and its token by itself.

        Raises:
            ExtensionError: the credentials lack what a key needs.
        """
        del obj, credentials
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
