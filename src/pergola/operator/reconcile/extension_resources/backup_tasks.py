"""Creating and deleting the BackupBucket and the BackupEntry (spec 20 §15.1)."""

from collections.abc import Iterable

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key
from pergola.extension_api.kinds import BACKUP_BUCKET, BACKUP_ENTRY, ExtensionKind
from pergola.garden.components.etcds.backups import ENTRY_SECRET, bucket_name, generated
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.errors import UnknownKind
from pergola.operator.reconcile.extension_resources.backup import (
    backup_bucket,
    backup_entry,
    credentials,
    entry_name,
)
from pergola.operator.reconcile.extension_resources.caller import Caller
from pergola.operator.reconcile.extension_resources.inputs import referenced


async def reconcile_bucket(caller: Caller, landscape: Landscape) -> None:
    """Deploy the BackupBucket and wait until it is ready.

    Raises:
        OperatorError: The region is unknown, or another BackupBucket has the name.
        CallerError: The bucket did not become ready.
        KubeError: The API server refused, or did not answer.
    """
    await _reconcile(caller, BACKUP_BUCKET, backup_bucket(landscape))


async def reconcile_entry(caller: Caller, landscape: Landscape) -> None:
    """Deploy the BackupEntry and wait until it is ready.

    Raises:
        OperatorError: The extension did not keep the Secret for the etcd, or as for
            `reconcile_bucket`.
        CallerError: The entry did not become ready.
        KubeError: The API server refused, or did not answer.
    """
    bucket = await caller.client.get(BACKUP_BUCKET.gvk, Key("", bucket_name(landscape)))
    inputs = await _credentials(caller, landscape, bucket)
    entry = backup_entry(landscape, bucket, inputs)
    await _reconcile(caller, BACKUP_ENTRY, entry)
    key = Key(NAMESPACE, ENTRY_SECRET)
    if await caller.client.find(SECRET, key, metadata_only=True) is None:
        raise OperatorError(
            f"BackupEntry {entry_name(landscape)} is ready, but Secret {key} does not exist: the "
            "extension that serves it has to keep the credentials of the etcd there"
        )


async def destroy_entry(caller: Caller, landscape: Landscape) -> None:
    """Delete the BackupEntry, and wait until it is gone; raises as `destroy_bucket` does."""
    await _destroy(caller, BACKUP_ENTRY, Key("", entry_name(landscape)))


async def destroy_bucket(caller: Caller, landscape: Landscape) -> None:
    """Delete the BackupBucket, and wait until it is gone.

    Its extension decides whether to keep the data.

    Raises:
        CallerError: It was not deleted.
        KubeError: The API server refused, or did not answer.
    """
    await _destroy(caller, BACKUP_BUCKET, Key("", bucket_name(landscape)))


async def _reconcile(caller: Caller, kind: ExtensionKind, desired: JsonObject) -> JsonObject:
    live = await caller.client.find(kind.gvk, Key.of(desired))
    return await caller.wait(kind, await caller.deploy(kind, desired, live))


async def _destroy(caller: Caller, kind: ExtensionKind, key: Key) -> None:
    try:
        live = await caller.client.find(kind.gvk, key)
    except UnknownKind:
        return
    if live is not None:
        await caller.remove(kind, live)


async def _credentials(
    caller: Caller, landscape: Landscape, bucket: JsonObject
) -> Iterable[JsonObject]:
    """Return the Secret with the credentials of a bucket, if it exists and is readable."""
    secret = credentials(landscape, bucket)
    if generated(bucket) is None:
        return referenced(landscape, secret.name)
    if secret.namespace != NAMESPACE:
        return ()
    found = await caller.client.find(SECRET, Key(secret.namespace, secret.name))
    return () if found is None else (found,)
