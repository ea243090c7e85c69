"""The object store for backups of the main etcd (spec 20 §15.1)."""

from typing import Final, NamedTuple

from pergola.operator.components.etcds import schedules
from pergola.operator.garden.landscape import Landscape

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
    bucket, _, path = (backup.bucket_name or "").partition("/")
    return Store(
        provider=backup.provider,
        container=bucket or f"garden-{landscape.garden.uid}",
        prefix=f"{path.strip('/')}/{_ROLE}" if path.strip("/") else _ROLE,
        secret=landscape.backup_secret or backup.secret_ref.name,
        schedule=schedules.full_snapshot(landscape.garden).cron(),
    )
