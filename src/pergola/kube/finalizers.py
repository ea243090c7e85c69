"""Finalizers: an object stays until each controller that added one has removed it.

A write names the version that it is based on, so no finalizer of another controller is lost: a
concurrent change raises Conflict, and the next reconciliation reads again.
"""

from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    deletion_timestamp_of,
    finalizers_of,
    resource_version_of,
    uid_of,
)
from pergola.kube.client import Client
from pergola.kube.errors import NotFound


async def add_finalizer(
    client: Client, gvk: GroupVersionKind, obj: JsonObject, finalizer: str
) -> JsonObject | None:
    """Add a finalizer, unless the object has it or is already being deleted.

    Returns:
        The object as it is afterwards; None if it is gone.

    Raises:
        Conflict: the object changed since it was read.
        KubeError: the API server refused, or did not answer.
    """
    finalizers = finalizers_of(obj)
    if finalizer in finalizers or deletion_timestamp_of(obj) is not None:
        return obj
    return await _patch(client, gvk, obj, [*finalizers, finalizer])


async def remove_finalizer(
    client: Client, gvk: GroupVersionKind, obj: JsonObject, finalizer: str
) -> bool:
    """Remove a finalizer; return whether the object had it.

    Raises:
        Conflict: the object changed since it was read.
        KubeError: the API server refused, or did not answer.
    """
    finalizers = finalizers_of(obj)
    if finalizer not in finalizers:
        return False
    await _patch(client, gvk, obj, [each for each in finalizers if each != finalizer])
    return True


async def _patch(
    client: Client, gvk: GroupVersionKind, obj: JsonObject, finalizers: list[str]
) -> JsonObject | None:
    metadata = {
        "finalizers": finalizers,
        "resourceVersion": resource_version_of(obj),
        "uid": uid_of(obj),
    }
    try:
        return await client.patch(gvk, Key.of(obj), {"metadata": metadata})
    except NotFound:
        return None
