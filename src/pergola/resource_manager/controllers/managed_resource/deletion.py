"""Deletion of managed objects when a ManagedResource is deleted or handed over (spec 10 §4.10)."""

from collections.abc import Sequence
from typing import Final

from pergola.api.objects import JsonObject, Key, finalizers_of, map_at, maps_at
from pergola.resource_manager.controllers.managed_resource.origin import Origin
from pergola.resource_manager.controllers.managed_resource.own_writes import OwnWrites
from pergola.resource_manager.controllers.managed_resource.prune import (
    Pending,
    Pruner,
    pending_message,
)
from pergola.resource_manager.controllers.managed_resource.references import object_key
from pergola.resource_manager.controllers.managed_resource.settled import Settled
from pergola.resource_manager.controllers.secret import SecretRelease
from pergola.resource_manager.responsibility import Responsibility
from pergola.runtime.controlling.controller import DONE, Again, Outcome

RETRY_SECONDS: Final = 5.0


class Deletion:
    """The deletion of managed objects, followed by the release of the ManagedResource."""

    def __init__(
        self,
        mine: Responsibility,
        writes: OwnWrites,
        pruner: Pruner,
        settled: Settled,
        secrets: SecretRelease,
    ) -> None:
        self._mine = mine
        self._writes = writes
        self._pruner = pruner
        self._settled = settled
        self._secrets = secrets

    async def delete(self, resource: JsonObject, owner: Origin) -> Outcome:
        """Delete all objects of a ManagedResource, then remove our finalizer from it."""
        if self._mine.finalizer not in finalizers_of(resource):
            return DONE
        keep = bool(map_at(resource, "spec").get("keepObjects"))
        resource = await self._writes.write_conditions(
            resource, lambda c: c.deleting(keep_objects=keep)
        )
        if not keep:
            unrecorded = self._writes.unrecorded(Key.of(resource))
            references = [*maps_at(resource, "status", "resources"), *unrecorded]
            if await self.delete_objects(resource, references, owner):
                return Again(RETRY_SECONDS)
        async with self._secrets.leaving(Key.of(resource)):
            await self._writes.remove_finalizer(resource)
        return DONE

    async def delete_objects(
        self, resource: JsonObject, references: Sequence[JsonObject], owner: Origin
    ) -> list[Pending]:
        """Delete objects; return those that still exist, which the condition then reports."""
        claims = bool(map_at(resource, "spec").get("deletePersistentVolumeClaims"))
        pending = await self._pruner.delete(references, owner, claims=claims)
        if pending:
            message = pending_message(pending)
            await self._writes.write_conditions(resource, lambda c: c.deletion_pending(message))
        else:
            self._settled.forget(map(object_key, references))
        return pending
