"""Writing the conditions of extension resources: one patch, only if something differs."""

from collections.abc import Collection, Mapping
from datetime import datetime

from pergola.api.conditions import set_condition
from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at, resource_version_of
from pergola.extensions.health_checks.aggregate import ConditionUpdate
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.patches import same


async def patch_conditions(
    client: Client,
    gvk: GroupVersionKind,
    obj: JsonObject,
    updates: Mapping[str, ConditionUpdate],
    *,
    remove: Collection[str],
    now: datetime,
) -> JsonObject | None:
    """Write conditions to the resource that was checked.

    Args:
        updates: by condition type.
        remove: condition types to remove.

    Returns:
        The resource as written; None if there was nothing to write, or if it was deleted.

    Raises:
        Conflict: the resource has changed since it was checked.
    """
    present = maps_at(obj, "status", "conditions")
    conditions = [c for c in present if c.get("type") not in remove]
    for kind, update in updates.items():
        conditions = set_condition(conditions, kind, now=now, **update._asdict())
    if same([*conditions], [*present]):
        return None
    patch = {
        "metadata": {"resourceVersion": resource_version_of(obj)},
        "status": {"conditions": conditions},
    }
    try:
        return await client.patch(gvk, Key.of(obj), patch, subresource="status")
    except NotFound:
        return None
