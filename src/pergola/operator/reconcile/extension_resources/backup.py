"""The BackupBucket and the BackupEntry of the main etcd (spec 20 §15.1, spec 21 §15.3)."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, map_at, name_of, without_nulls
from pergola.api.operator_v1alpha1.etcd import Backup
from pergola.extension_api.kinds import BACKUP_BUCKET, BACKUP_ENTRY
from pergola.garden.components.etcds.backups import bucket_of
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.errors import OperatorError
from pergola.operator.reconcile.extension_resources.inputs import (
    garden_resource,
    referenced,
    secret_reference,
)
from pergola.operator.reconcile.extension_resources.served import Need, extensions_for

ENTRY_GATE: Final = "BackupEntryForGarden"
ENTRY_SECRET: Final = "etcd-backup"  # noqa: S105 - the name of a Secret
"""The Secret in which the extension stores the etcd's credentials for a BackupEntry."""

_NO_BACKUP: Final = "spec.virtualCluster.etcd.main.backup is not set"


class Generated(NamedTuple):
    """The Secret that an extension generated for a BackupBucket."""

    name: str
    namespace: str


def absent(landscape: Landscape) -> str | None:
    """Return why the main etcd is not backed up, or None if it is."""
    return None if landscape.virtual.etcd.main.backup else _NO_BACKUP


def bucket_absent(landscape: Landscape) -> str | None:
    """Return why there is no BackupBucket, or None.

    An existing bucket needs no extension: without one, the Secret of the Garden is used directly.
    """
    backup = landscape.virtual.etcd.main.backup
    if backup is None:
        return _NO_BACKUP
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
    return bucket_of(landscape, _backup(landscape))


def entry_name(landscape: Landscape) -> str:
    """Return the name of the BackupEntry; extensions read the namespace of the etcd from it."""
    return f"{NAMESPACE}--{landscape.garden.uid}"


def backup_bucket(landscape: Landscape) -> JsonObject:
    """Return the BackupBucket of a Garden with a backup.

    Raises:
        OperatorError: The Garden does not specify the region of the bucket.
    """
    backup = _backup(landscape)
    secret = backup.secret_ref.name
    spec = {
        **_of_provider(backup),
        "region": _region(landscape, backup),
        "secretRef": secret_reference(secret),
    }
    return garden_resource(
        BACKUP_BUCKET, bucket_name(landscape), spec, inputs=referenced(landscape, secret)
    )


def backup_entry(
    landscape: Landscape, bucket: JsonObject, inputs: Iterable[JsonObject]
) -> JsonObject:
    """Return the BackupEntry of a Garden with a backup.

    Args:
        bucket: The live BackupBucket.
        inputs: The Secret with its credentials.

    Raises:
        OperatorError: The Garden does not specify the region of the bucket.
    """
    backup = _backup(landscape)
    spec = {
        **_of_provider(backup),
        "bucketName": bucket_name(landscape),
        "region": _region(landscape, backup),
        "secretRef": secret_reference(*credentials(landscape, bucket)),
    }
    status = map_at(bucket, "status").get("providerStatus")
    if isinstance(status, dict):
        spec["backupBucketProviderStatus"] = without_nulls(status)
    return garden_resource(BACKUP_ENTRY, entry_name(landscape), spec, inputs=inputs)


def credentials(landscape: Landscape, bucket: JsonObject) -> Generated:
    """Return the Secret with the credentials of a bucket: the generated one, if there is one."""
    return generated(bucket) or Generated(_backup(landscape).secret_ref.name, NAMESPACE)


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


def _backup(landscape: Landscape) -> Backup:
    backup = landscape.virtual.etcd.main.backup
    if backup is None:
        raise OperatorError(_NO_BACKUP)
    return backup


def _of_provider(backup: Backup) -> JsonObject:
    if backup.provider_config is None:
        return {"type": backup.provider}
    return {"type": backup.provider, "providerConfig": without_nulls(backup.provider_config)}


def _region(landscape: Landscape, backup: Backup) -> str:
    region = backup.region or landscape.runtime.provider.region
    if not region:
        raise OperatorError(
            "the region of the backup bucket is unknown: set "
            "spec.virtualCluster.etcd.main.backup.region or spec.runtimeCluster.provider.region"
        )
    return region
