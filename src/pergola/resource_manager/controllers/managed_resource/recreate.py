"""Deletion of objects whose update the server rejects as invalid, to recreate them."""

from typing import Final

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, CRD, SECRET
from pergola.api.objects import JsonObject, annotations_of, uid_of
from pergola.kube.client import Client
from pergola.kube.definitions import set_up_storage
from pergola.kube.errors import Invalid
from pergola.resource_manager.controllers.managed_resource.plan import Planned
from pergola.runtime.logging import get_logger

log = get_logger("managedresource")

_IMMUTABLE: Final = frozenset({CONFIG_MAP.group_kind, SECRET.group_kind})
_FROZEN: Final = "field is immutable when `immutable` is set"
_PROPAGATIONS: Final = frozenset({"Background", "Foreground", "Orphan"})


class ApplyRefused(Exception):
    """An object cannot be applied as it is; the text gives the reason."""


async def delete_to_recreate(
    client: Client, planned: Planned, merged: JsonObject, live: JsonObject, error: Invalid
) -> None:
    """Delete an object if that was requested, or if it is an immutable ConfigMap or Secret.

    Raises:
        Invalid: the deletion was not requested.
        ApplyRefused: the object still exists, or the requested propagation is unknown.
    """
    annotations = annotations_of(merged)
    requested = marks.is_truthy(annotations.get(marks.DELETE_ON_INVALID_UPDATE))
    immutable = planned.gvk.group_kind in _IMMUTABLE and _is_frozen(error)
    if not requested and not immutable:
        raise error
    propagation = annotations.get(marks.DELETION_PROPAGATION_ON_INVALID_UPDATE, "")
    if propagation and propagation not in _PROPAGATIONS:
        raise ApplyRefused(
            f"annotation {marks.DELETION_PROPAGATION_ON_INVALID_UPDATE} is "
            f"{propagation!r}; it must be Background, Foreground or Orphan"
        )
    if planned.gvk.group_kind == CRD.group_kind:
        await set_up_storage(client, live)
    gone = await client.delete(planned.gvk, planned.key, uid=uid_of(live), propagation=propagation)
    log.info("object deleted to be recreated", object=planned.object_key, error=str(error))
    if not gone:
        raise ApplyRefused(f"deleted to be recreated, but it still exists: {error}")


def _is_frozen(error: Invalid) -> bool:
    """Return whether the object says itself that it is immutable.

    Other fields, such as the type of a Secret, never change; a manifest that changes them may be a
    mistake, and is reported.
    """
    return any(
        cause.get("reason") == "FieldValueForbidden" and _FROZEN in str(cause.get("message"))
        for cause in error.causes
    )
