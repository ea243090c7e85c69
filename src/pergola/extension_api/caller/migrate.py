"""Migration of a resource away from its seed, to be restored on another seed (spec 40 §4)."""

from pergola.api.marks import OPERATION_MIGRATE
from pergola.api.objects import JsonObject, Key
from pergola.extension_api.caller.deploy import Request, ask
from pergola.extension_api.caller.destroy import destroy
from pergola.extension_api.caller.errors import NotMigrated
from pergola.extension_api.caller.readiness import migration
from pergola.extension_api.caller.shoot_state import collect
from pergola.extension_api.caller.wait import PLAIN_WAIT, Waiting, wait_deleted, wait_migrated
from pergola.extension_api.kinds import ExtensionKind
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.runtime.clock import Clock


async def migrate(client: Client, kind: ExtensionKind, key: Key, clock: Clock) -> Request | None:
    """Request the migration of a resource; return None if it does not exist.

    Raises:
        KubeError: the API server or its webhooks refused.
    """
    try:
        return await ask(client, kind, key, OPERATION_MIGRATE, clock)
    except NotFound:
        return None


async def leave(
    client: Client, kind: ExtensionKind, key: Key, clock: Clock, waiting: Waiting = PLAIN_WAIT
) -> JsonObject | None:
    """Migrate a resource away, wait, and return the ShootState for the next seed.

    Return None if the resource does not exist. Otherwise it still exists afterwards, without
    finalizers: save the ShootState before `abandon` deletes it.

    Raises:
        NotMigrated: it did not complete in time.
        Unrestorable: an object that the state refers to does not exist.
        KubeError: something cannot be read, or was refused.
    """
    if await migrate(client, kind, key, clock) is None:
        return None
    obj = await wait_migrated(client, kind, key, waiting)
    return None if obj is None else await collect(client, kind, obj)


async def abandon(
    client: Client, kind: ExtensionKind, key: Key, clock: Clock, waiting: Waiting = PLAIN_WAIT
) -> None:
    """Delete a resource that was migrated away, and wait until it is gone.

    Raises:
        NotMigrated: it was not migrated away, so its extension would destroy what it created.
        NotDeleted: it still exists.
        KubeError: it cannot be read, or its deletion was refused.
    """
    try:
        problem = migration(await client.get(kind.gvk, key)).problem
    except NotFound:
        return
    if problem:
        raise NotMigrated(f"{kind.kind} {key} is not deleted: it was not migrated away: {problem}")
    if await destroy(client, kind, key, clock):
        await wait_deleted(client, kind, key, waiting)
