"""Collecting an export from the runtime cluster of a Garden; it only reads."""

from collections.abc import Mapping
from typing import Final

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    labels_of,
    map_at,
    name_of,
    namespace_of,
    uid_of,
)
from pergola.api.operator_v1alpha1 import GARDEN, garden_from
from pergola.garden.components.etcds.backups import own_bucket
from pergola.garden.components.observability.global_password import SEED_PASSWORD
from pergola.garden.components.virtual_access import GENERIC_NAME
from pergola.garden.landscape import NAMESPACE
from pergola.kube.client import Client
from pergola.kube.patches import apply_merge_patch
from pergola.operator.rotation.phases import in_progress
from pergola.operator.run.build import IDENTITY
from pergola.operator.run.observed import WILDCARD
from pergola.operator.run.references import references_of
from pergola.operator.transfer.export import Export, TransferError
from pergola.runtime.task_group import gathered, together
from pergola.secrets_manager import durable, observe_managed
from pergola.secrets_manager.managed import MANAGED_BY

_KINDS: Final = {kind.kind: kind for kind in (SECRET, CONFIG_MAP)}
_PARTS: Final = ("type", "immutable", "data", "binaryData")
# Requests to the old Garden, its operator's records, and kubectl's annotations.
_DROPPED: Final = frozenset(
    {
        marks.OPERATION,
        marks.OPERATOR_IGNORE,
        marks.CONFIRMATION_DELETION,
        GENERIC_NAME,
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)


async def collect(client: Client, name: str) -> Export:
    """Return the export of a Garden.

    Raises:
        TransferError: It has no credentials yet.
        SecretsManagerError: A Secret holds a value that is not base64.
        KubeError: The API server refused, or did not answer.
    """
    garden = await client.get(GARDEN, Key("", name))
    managed, provided = await together(
        observe_managed(client, NAMESPACE, IDENTITY), _provided(client, garden)
    )
    credentials = durable(managed)
    if not credentials:
        raise TransferError(
            f"Garden {name} has no credentials yet: export it once it has been reconciled"
        )
    return Export(
        as_applied(garden),
        tuple(_bare("Secret", secret.obj) for secret in credentials),
        provided,
        in_progress(garden_from(garden)),
    )


def as_applied(garden: JsonObject) -> JsonObject:
    """Return a Garden as a user would apply it to another cluster.

    A bucket named after the uid of the Garden is set in the spec: the new Garden has another uid,
    and would not find the backups otherwise.
    """
    bare = {
        "apiVersion": garden["apiVersion"],
        "kind": garden["kind"],
        "metadata": _metadata(garden),
        "spec": garden["spec"],
    }
    backup = map_at(garden, "spec", "virtualCluster", "etcd", "main", "backup")
    bucket, slash, path = str(backup.get("bucketName") or "").partition("/")
    if not backup or bucket:
        return bare
    named = {"bucketName": f"{own_bucket(uid_of(garden))}{slash}{path}"}
    main: JsonObject = {"main": {"backup": named}}
    return apply_merge_patch(bare, {"spec": {"virtualCluster": {"etcd": main}}})


async def _provided(client: Client, garden: JsonObject) -> tuple[JsonObject, ...]:
    """Return the existing user-provided objects, by kind and name."""
    named = {(each.kind, each.key) for each in references_of(garden) if each.kind in _KINDS}
    objects = await gathered(client.find(_KINDS[kind], key) for kind, key in named)
    found = {
        identity: _bare(identity[0], obj)
        for identity, obj in zip(named, objects, strict=True)
        if obj is not None
    }
    for selector in (WILDCARD, SEED_PASSWORD):
        for obj in await client.list(SECRET, NAMESPACE, labels=selector):
            if MANAGED_BY not in labels_of(obj):
                found[SECRET.kind, Key.of(obj)] = _bare(SECRET.kind, obj)
    return tuple(found[identity] for identity in sorted(found))


def _bare(kind: str, obj: JsonObject) -> JsonObject:
    """Return a Secret or ConfigMap without additions of its cluster."""
    parts: JsonObject = {name: obj[name] for name in _PARTS if name in obj}
    return {"apiVersion": "v1", "kind": kind, "metadata": _metadata(obj), **parts}


def _metadata(obj: JsonObject) -> JsonObject:
    metadata: JsonObject = {"name": name_of(obj)}
    if namespace := namespace_of(obj):
        metadata["namespace"] = namespace
    kept: Mapping[str, dict[str, str]] = {
        "labels": labels_of(obj),
        "annotations": {
            name: value for name, value in annotations_of(obj).items() if name not in _DROPPED
        },
    }
    return metadata | {name: values for name, values in kept.items() if values}
