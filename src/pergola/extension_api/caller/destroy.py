"""Deletion of a resource (spec 40 §4, §4.2)."""

from pergola.api.marks import CONFIRMATION_DELETION, TIMESTAMP
from pergola.api.objects import Key, uid_of
from pergola.extension_api.caller.deploy import timestamp_of
from pergola.extension_api.kinds import ExtensionKind
from pergola.kube.client import Client
from pergola.kube.errors import NotFound, UnknownKind
from pergola.runtime.clock import Clock


async def destroy(client: Client, kind: ExtensionKind, key: Key, clock: Clock) -> bool:
    """Confirm the deletion of a resource, and delete it; `wait_deleted` waits for completion.

    Returns:
        Whether the resource existed.

    Raises:
        KubeError: the API server or its webhooks refused.
    """
    marks = {CONFIRMATION_DELETION: "true", TIMESTAMP: timestamp_of(clock.now())}
    try:
        confirmed = await client.patch(kind.gvk, key, {"metadata": {"annotations": marks}})
        await client.delete(kind.gvk, key, uid=uid_of(confirmed))
    except (NotFound, UnknownKind):
        return False
    return True
