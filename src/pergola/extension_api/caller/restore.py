"""Restoration of a resource on a new seed, with its state (spec 40 §4)."""

from pergola.api.marks import OPERATION_RESTORE, OPERATION_WAIT_FOR_STATE
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at
from pergola.extension_api.caller.deploy import Request, ask, deploy
from pergola.extension_api.caller.shoot_state import Saved, saved
from pergola.extension_api.kinds import ExtensionKind
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists
from pergola.runtime.clock import Clock


async def restore(
    client: Client,
    kind: ExtensionKind,
    desired: JsonObject,
    shoot_state: JsonObject | None,
    clock: Clock,
) -> Request:
    """Deploy a resource, write its state, and request its restoration.

    The extension ignores the resource until the state is written. An existing state is kept: it is
    newer than a ShootState.

    Args:
        shoot_state: contains the state; None restores without one.

    Raises:
        Unrestorable: the ShootState lacks an object that the state refers to; nothing was written.
        CallerError: the resource is being deleted.
        KubeError: the API server or its webhooks refused.
    """
    key, purpose = Key.of(desired), map_at(desired, "spec").get("purpose")
    known = (
        Saved() if shoot_state is None else saved(shoot_state, kind.kind, key.name, purpose or "")
    )
    deployed = await deploy(client, kind, desired, clock, operation=OPERATION_WAIT_FOR_STATE)
    if not map_at(deployed.obj, "status").get("state"):
        await _give(client, kind, key, known)
    return await ask(client, kind, key, OPERATION_RESTORE, clock)


async def _give(client: Client, kind: ExtensionKind, key: Key, known: Saved) -> None:
    # Objects first: the next attempt assumes that they exist if the state is stored.
    for obj in known.objects:
        await _apply(client, key.namespace, obj)
    status: JsonObject = {}
    if known.state is not None:
        status["state"] = known.state
    if known.resources:
        status["resources"] = list(known.resources)
    if status:
        await client.patch(kind.gvk, key, {"status": status}, subresource="status")


async def _apply(client: Client, namespace: str, obj: JsonObject) -> None:
    placed = {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}
    try:
        await client.create(placed)
    except AlreadyExists:
        await client.patch(GroupVersionKind.of(placed), Key.of(placed), placed)
