"""Writes to the ManagedResource itself: finalizer, operation annotation and status."""

from collections.abc import Callable, Sequence

from pergola.api import marks
from pergola.api.managed_resource_conditions import Reason
from pergola.api.objects import (
    JsonObject,
    Key,
    finalizers_of,
    generation_of,
    map_at,
    maps_at,
    resource_version_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.errors import NotFound
from pergola.resource_manager.controllers.managed_resource.completions import Completions
from pergola.resource_manager.controllers.managed_resource.conditions import (
    Conditions,
    errors_message,
    is_announced,
)
from pergola.resource_manager.controllers.managed_resource.plan import Plan
from pergola.resource_manager.controllers.managed_resource.references import same_references
from pergola.resource_manager.controllers.managed_resource.work import Work
from pergola.resource_manager.source import Source
from pergola.resource_manager.status import StatusWriter
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.controller import ReconcileError


class OwnWrites:
    """Writes to ManagedResources, each based on the newest known state."""

    def __init__(self, source: Source, completions: Completions, clock: Clock) -> None:
        self._source = source
        self._completions = completions
        self._clock = clock
        self._status = StatusWriter(source)

    # Metadata

    async def add_finalizer(self, resource: JsonObject) -> JsonObject:
        """Add this instance's finalizer; return the ManagedResource as stored."""
        finalizers = [*finalizers_of(resource), self._source.responsibility.finalizer]
        return await self._patch(resource, {"finalizers": finalizers})

    async def remove_finalizer(self, resource: JsonObject) -> None:
        """Remove this instance's finalizer, after which the ManagedResource may be gone."""
        newest = self._source.resource(Key.of(resource))
        if newest is not None:
            resource = newest.unpack()
        own = self._source.responsibility.finalizer
        try:
            await self._patch(
                resource, {"finalizers": [f for f in finalizers_of(resource) if f != own]}
            )
        except NotFound:
            return

    async def remove_operation(self, resource: JsonObject) -> JsonObject:
        """Remove the operation annotation; return the ManagedResource as stored."""
        return await self._patch(resource, {"annotations": {marks.OPERATION: None}})

    async def _patch(self, resource: JsonObject, metadata: JsonObject) -> JsonObject:
        metadata = {**metadata, "resourceVersion": resource_version_of(resource)}
        patched = await self._source.client.patch(
            MANAGED_RESOURCE, Key.of(resource), {"metadata": metadata}
        )
        self._source.observe(patched)
        return patched

    # Status

    async def write_conditions(
        self, resource: JsonObject, set_conditions: Callable[[Conditions], None]
    ) -> JsonObject:
        """Set conditions; return the ManagedResource as stored."""
        return await self._write(resource, set_conditions, {})

    async def write_failure(
        self,
        resource: JsonObject,
        reason: str,
        message: str,
        *,
        error: type[ReconcileError] = ReconcileError,
    ) -> ReconcileError:
        """Report a failure in the condition; return the error to raise for a backoff."""
        await self.write_conditions(resource, lambda c: c.failed(reason, message))
        return error(message)

    async def announce(self, resource: JsonObject, plan: Plan, work: Work) -> JsonObject:
        """Record the changed content and the objects to create, before any other write.

        An object is recorded before it is created, so that none is forgotten if the run ends
        halfway (spec 10 §4.4, B10).
        """

        def change(newest: JsonObject) -> JsonObject:
            status = map_at(newest, "status")
            present = maps_at(status, "resources")
            known = status.get("secretsDataChecksum") == plan.checksum
            if known and same_references(work.recorded, present):
                return status
            conditions = Conditions(newest, self._clock.now())
            conditions.pending()
            union = work.union(present)
            return {**status, "conditions": conditions.items, "resources": union}

        return await self._status.write(resource, change) or resource

    async def finish(
        self, resource: JsonObject, plan: Plan, work: Work, remarks: Sequence[str]
    ) -> None:
        """Record the managed objects, and whether everything could be decoded.

        If the content was announced, it is recorded together with the first verdict about it.

        Args:
            remarks: about objects, for the message of the condition.
        """
        fields = {
            "observedGeneration": generation_of(resource),
            "secretsDataChecksum": plan.checksum,
            "resources": work.recorded,
        }
        if is_announced(resource) and not plan.errors:
            self._completions.hold(resource, fields, remarks)
            return

        def set_conditions(conditions: Conditions) -> None:
            if plan.errors:
                conditions.failed(Reason.DECODING_FAILED, errors_message(plan.errors))
            else:
                conditions.applied(remarks)

        await self._write(resource, set_conditions, fields)

    async def _write(
        self,
        resource: JsonObject,
        set_conditions: Callable[[Conditions], None],
        fields: JsonObject,
    ) -> JsonObject:
        def change(newest: JsonObject) -> JsonObject:
            conditions = Conditions(newest, self._clock.now())
            set_conditions(conditions)
            return {**map_at(newest, "status"), "conditions": conditions.items, **fields}

        return await self._status.write(resource, change) or resource
