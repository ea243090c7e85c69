"""The BackupBucket and the BackupEntry of the main etcd (spec 20 §15.1, spec 21 §15.3)."""

from collections.abc import Iterable

from pergola.api.objects import JsonObject, map_at, without_nulls
from pergola.api.operator_v1alpha1.etcd import Backup
from pergola.extension_api.kinds import BACKUP_BUCKET, BACKUP_ENTRY
from pergola.garden.components.etcds.backups import (
    NO_BACKUP,
    Generated,
    bucket_name,
    generated,
)
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.errors import OperatorError
from pergola.operator.reconcile.extension_resources.inputs import (
    garden_resource,
    referenced,
    secret_reference,
)


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


def _backup(landscape: Landscape) -> Backup:
    backup = landscape.virtual.etcd.main.backup
    if backup is None:
        raise OperatorError(NO_BACKUP)
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
