"""Writing the conditions of a Garden: one patch of its status, only if something differs."""

from collections.abc import Sequence

from pergola.api.objects import JsonObject, Key, maps_at, resource_version_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.patches import same


async def patch_conditions(
    client: Client, garden: JsonObject, conditions: Sequence[JsonObject]
) -> JsonObject | None:
    """Write conditions to the Garden that was checked.

    A merge patch replaces the whole list. The resourceVersion prevents it from undoing concurrent
    changes by another writer.

    Returns:
        The Garden as written; None if there was nothing to write, or if it was deleted.

    Raises:
        Conflict: The Garden has changed since it was checked.
        KubeError: The API server refused, or did not answer.
    """
    if same([*conditions], [*maps_at(garden, "status", "conditions")]):
        return None
    patch = {
        "metadata": {"resourceVersion": resource_version_of(garden)},
        "status": {"conditions": [*conditions]},
    }
    try:
        return await client.patch(GARDEN, Key.of(garden), patch, subresource="status")
    except NotFound:
        return None
