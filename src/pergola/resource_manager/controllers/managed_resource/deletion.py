"""Deletion of managed objects when a ManagedResource is deleted or handed over (spec 10 §4.10)."""

from collections.abc import Sequence
from typing import Final

from pergola.api.objects import JsonObject, Key, finalizers_of, map_at, maps_at
from pergola.resource_manager.controllers.managed_resource.circles import needed_objects
from pergola.resource_manager.controllers.managed_resource.others import Others
from pergola.resource_manager.controllers.managed_resource.own_writes import OwnWrites
from pergola.resource_manager.controllers.managed_resource.prune import (
    Pending,
    Pruner,
    pending_message,
)
from pergola.resource_manager.controllers.managed_resource.references import (
    object_key,
    reference_key,
    reference_kind,
)
from pergola.resource_manager.controllers.managed_resource.settled import Settled
from pergola.resource_manager.controllers.secret import SecretRelease
from pergola.resource_manager.origin import Origin
from pergola.resource_manager.source import Source
from pergola.runtime.controlling.controller import DONE, Again, Outcome
from pergola.runtime.controlling.events import Recorder, Regarding

RETRY_SECONDS: Final = 5.0


class Deletion:
    """The deletion of managed objects, followed by the release of the ManagedResource."""

    def __init__(
        self,
        source: Source,
        writes: OwnWrites,
        pruner: Pruner,
        settled: Settled,
        secrets: SecretRelease,
        events: Recorder,
    ) -> None:
        self._mine = source.responsibility
        self._source = source.client
        self._others = Others(source, pruner.target.describers)
        self._writes = writes
        self._pruner = pruner
        self._settled = settled
        self._secrets = secrets
        self._events = events

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
        """Delete objects; return those that still exist, which the condition then reports.

        Objects that the ManagedResource needs itself stay.
        """
        needed = await needed_objects(
            resource,
            ((reference_kind(r), reference_key(r)) for r in references),
            source=self._source,
            target=self._pruner.target.client,
        )
        for remark in needed.values():
            self._events.warning(Regarding.of(resource), "ObjectKept", remark)
        references = [r for r in references if object_key(r) not in needed]
        claims = bool(map_at(resource, "spec").get("deletePersistentVolumeClaims"))
        pending = await self._pruner.delete(
            references, owner, claims=claims, spare=self._others.sparing(owner)
        )
        if pending:
            message = pending_message(pending)
            await self._writes.write_conditions(resource, lambda c: c.deletion_pending(message))
        else:
            self._settled.forget(map(object_key, references))
        return pending
