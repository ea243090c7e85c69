"""The Secret `etcd-backup`, from which an etcd reads the bucket and the credentials for backups."""

from base64 import b64encode
from collections.abc import Collection, Mapping
from typing import Final

from pergola.api.kinds import NAMESPACE, SECRET
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
from pergola.extension_api.errors import ExtensionError
from pergola.extensions.backups.entry import Entry
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.runtime.logging import get_logger

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
    client: Client, obj: JsonObject, entry: Entry, more: Mapping[str, str]
) -> None:
    """Create or change the Secret; write nothing if nothing differs.

    Do nothing if the etcd's namespace does not exist or is being deleted.

    Args:
        obj: the BackupEntry.
        more: keys in addition to the credentials.

    Raises:
        ExtensionError: the Secret with the credentials does not exist.
        KubeError: the API server refused.
    """
    namespace = await client.find(NAMESPACE, Key("", entry.secret.namespace), metadata_only=True)
    if namespace is None or deletion_timestamp_of(namespace) is not None:
        return
    credentials = await _credentials(client, obj)
    live = await client.find(SECRET, entry.secret)
    if live is None:
        metadata = {"name": entry.secret.name, "namespace": entry.secret.namespace}
        new = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata}
        await client.create(_with(new, obj, credentials, more))
        return
    desired = _with(live, obj, credentials, more)
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
