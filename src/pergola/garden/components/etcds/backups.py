"""The object store for backups of the main etcd (spec 20 §15.1)."""

from typing import Final, NamedTuple

from pergola.api.operator_v1alpha1.etcd import Backup
from pergola.garden.components.etcds import schedules
from pergola.garden.landscape import Landscape

_ROLE: Final = "virtual-garden-etcd-main/etcd-main"


class Store(NamedTuple):
    """A location in an object store, and when to write to it.

    Attributes:
        container: The bucket.
        prefix: The path in the bucket.
        schedule: The cron expression for full snapshots, in UTC.
    """

    provider: str
    container: str
    prefix: str
    secret: str
    schedule: str


def store(landscape: Landscape) -> Store | None:
    """Return the store for backups of the main etcd, or None if it is not backed up."""
    backup = landscape.virtual.etcd.main.backup
    if backup is None:
        return None
    _, _, path = (backup.bucket_name or "").partition("/")
    return Store(
        provider=backup.provider,
        container=bucket_of(landscape, backup),
        prefix=f"{path.strip('/')}/{_ROLE}" if path.strip("/") else _ROLE,
        secret=landscape.backup_secret or backup.secret_ref.name,
        schedule=schedules.full_snapshot(landscape.garden).cron(),
    )


def bucket_of(landscape: Landscape, backup: Backup) -> str:
    """Return the bucket of a backup: the one that the Garden names, or one of its own."""
    bucket, _, _ = (backup.bucket_name or "").partition("/")
    return bucket or own_bucket(landscape.garden.uid)


def own_bucket(uid: str) -> str:
    """Return the bucket of a Garden that names none, by its uid."""
    return f"garden-{uid}"
