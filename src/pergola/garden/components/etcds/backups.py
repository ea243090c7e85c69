"""The object store for backups of the main etcd (spec 20 §15.1)."""

from dataclasses import replace
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, Key, map_at, name_of
from pergola.api.operator_v1alpha1.etcd import Backup
from pergola.extension_api.kinds import BACKUP_BUCKET
from pergola.garden.components.component import Clusters
from pergola.garden.components.etcds import schedules
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.errors import OperatorError
from pergola.garden.landscape.served import Need, extensions_for

_ROLE: Final = "virtual-garden-etcd-main/etcd-main"


ENTRY_GATE: Final = "BackupEntryForGarden"
"""The feature gate for the BackupEntry."""
ENTRY_SECRET: Final = "etcd-backup"  # noqa: S105 - the name of a Secret
"""The Secret in which the extension stores the etcd's credentials for a BackupEntry."""
NO_BACKUP: Final = "spec.virtualCluster.etcd.main.backup is not set"
"""Why a Garden has no backups."""


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


class Generated(NamedTuple):
    """The Secret that an extension generated for a BackupBucket."""

    name: str
    namespace: str


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


def absent(landscape: Landscape) -> str | None:
    """Return why the main etcd is not backed up, or None if it is."""
    return None if landscape.virtual.etcd.main.backup else NO_BACKUP


def bucket_absent(landscape: Landscape) -> str | None:
    """Return why there is no BackupBucket, or None.

    An existing bucket needs no extension: without one, the Secret of the Garden is used directly.
    """
    backup = landscape.virtual.etcd.main.backup
    if backup is None:
        return NO_BACKUP
    need = Need(BACKUP_BUCKET.kind, backup.provider)
    if backup.bucket_name and not extensions_for(need, landscape.extensions):
        return (
            f"spec.virtualCluster.etcd.main.backup names the bucket, and no Extension serves {need}"
        )
    return None


def entry_absent(landscape: Landscape) -> str | None:
    """Return why there is no BackupEntry, or None."""
    reason = bucket_absent(landscape)
    if reason is None and not landscape.feature_gates.get(ENTRY_GATE, True):
        return f"the feature gate {ENTRY_GATE} is off"
    return reason


def expected_secret(landscape: Landscape) -> str:
    """Return the Secret that the etcd uses, as far as it is known before extensions have run.

    Empty for the one that the Garden names, or the one that an extension generates.
    """
    return "" if entry_absent(landscape) else ENTRY_SECRET


def bucket_name(landscape: Landscape) -> str:
    """Return the name of the BackupBucket, which is that of the bucket."""
    backup = landscape.virtual.etcd.main.backup
    if backup is None:
        raise OperatorError(NO_BACKUP)
    return bucket_of(landscape, backup)


def generated(bucket: JsonObject) -> Generated | None:
    """Return the Secret that the extension generated for a live BackupBucket, if any."""
    reference = map_at(bucket, "status", "generatedSecretRef")
    name, namespace = reference.get("name"), reference.get("namespace")
    return Generated(str(name), str(namespace or NAMESPACE)) if name else None


def etcd_secret(bucket: JsonObject) -> str:
    """Return the Secret for the etcd of a Garden without a BackupEntry.

    Empty for the one that the Garden names.

    Raises:
        OperatorError: The etcd cannot use it, because it is in another namespace.
    """
    secret = generated(bucket)
    if secret is None:
        return ""
    if secret.namespace != NAMESPACE:
        raise OperatorError(
            f"the extension of BackupBucket {name_of(bucket)} generated Secret "
            f"{secret.namespace}/{secret.name}, but the etcd needs one in namespace {NAMESPACE}: "
            f"set the feature gate {ENTRY_GATE}, or use an extension that keeps it there"
        )
    return secret.name


async def learn(landscape: Landscape, clusters: Clusters) -> Landscape:
    """Learn which Secret an extension made for the backups.

    Raises:
        OperatorError: The etcd cannot use it.
        KubeError: The API server refused, or did not answer.
    """
    if entry_absent(landscape) is None:
        return replace(landscape, backup_secret=ENTRY_SECRET)
    if bucket_absent(landscape) is not None:
        return landscape
    bucket = await clusters.client.get(BACKUP_BUCKET.gvk, Key("", bucket_name(landscape)))
    return replace(landscape, backup_secret=etcd_secret(bucket))
