"""The finalizer that keeps an Extension until all of its parts are removed."""

from pergola.api import marks
from pergola.api.objects import JsonObject, Key, finalizers_of, resource_version_of
from pergola.api.operator_v1alpha1 import EXTENSION
from pergola.kube.client import Client
from pergola.kube.errors import NotFound


async def add_finalizer(client: Client, extension: JsonObject) -> JsonObject:
    """Add the finalizer if it is missing; return the resulting Extension.

    Raises:
        Conflict: The Extension changed since it was read.
        KubeError: The API server refused, or did not answer.
    """
    finalizers = finalizers_of(extension)
    if marks.OPERATOR_FINALIZER in finalizers:
        return extension
    return await _patch(client, extension, [*finalizers, marks.OPERATOR_FINALIZER])


async def remove_finalizer(client: Client, key: Key) -> None:
    """Remove the finalizer if the Extension has it; raises as `add_finalizer` does."""
    live = await client.find(EXTENSION, key)
    if live is None or marks.OPERATOR_FINALIZER not in finalizers_of(live):
        return
    left = [each for each in finalizers_of(live) if each != marks.OPERATOR_FINALIZER]
    try:
        await _patch(client, live, left)
    except NotFound:
        return


async def _patch(client: Client, extension: JsonObject, finalizers: list[str]) -> JsonObject:
    metadata = {"finalizers": finalizers, "resourceVersion": resource_version_of(extension)}
    return await client.patch(EXTENSION, Key.of(extension), {"metadata": metadata})
