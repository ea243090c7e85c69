"""Writing the finalizer of protected objects; other finalizers stay unchanged."""

from pergola.api import marks
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    deletion_timestamp_of,
    finalizers_of,
    resource_version_of,
)
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.runtime.logging import get_logger

log = get_logger("references")


async def apply_finalizer(client: Client, gvk: GroupVersionKind, obj: JsonObject) -> None:
    """Add the finalizer, unless the object has it or is already being deleted.

    Raises:
        Conflict: The object changed since it was read.
        KubeError: The API server refused, or did not answer.
    """
    finalizers = finalizers_of(obj)
    if marks.REFERENCE_PROTECTION in finalizers or deletion_timestamp_of(obj) is not None:
        return
    await _patch(client, gvk, obj, [*finalizers, marks.REFERENCE_PROTECTION])
    log.info("object protected", kind=gvk.kind, object=str(Key.of(obj)))


async def prune_finalizer(client: Client, gvk: GroupVersionKind, obj: JsonObject) -> None:
    """Remove the finalizer, if the object has it.

    Raises:
        Conflict: The object changed since it was read.
        KubeError: The API server refused, or did not answer.
    """
    finalizers = finalizers_of(obj)
    if marks.REFERENCE_PROTECTION not in finalizers:
        return
    left = [each for each in finalizers if each != marks.REFERENCE_PROTECTION]
    await _patch(client, gvk, obj, left)
    log.info("object released", kind=gvk.kind, object=str(Key.of(obj)))


async def _patch(
    client: Client, gvk: GroupVersionKind, obj: JsonObject, finalizers: list[str]
) -> None:
    metadata = {"finalizers": finalizers, "resourceVersion": resource_version_of(obj)}
    try:
        await client.patch(gvk, Key.of(obj), {"metadata": metadata})
    except NotFound:
        log.debug("object is gone", kind=gvk.kind, object=str(Key.of(obj)))
