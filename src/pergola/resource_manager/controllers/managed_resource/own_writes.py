"""Writes to the ManagedResource itself: finalizer, operation annotation and status."""

from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry, Counter

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
from pergola.kube.errors import (
    ApiError,
    Conflict,
    NotFound,
    TooManyRequests,
    Unauthorized,
    is_outage,
)
from pergola.resource_manager.controllers.managed_resource.completions import Completions
from pergola.resource_manager.controllers.managed_resource.conditions import (
    Conditions,
    errors_message,
    is_announced,
)
from pergola.resource_manager.controllers.managed_resource.plan import Plan
from pergola.resource_manager.controllers.managed_resource.references import (
    object_key,
    same_references,
)
from pergola.resource_manager.controllers.managed_resource.work import Work
from pergola.resource_manager.source import Source
from pergola.resource_manager.status import Change, StatusWriter
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.controller import ReconcileError
from pergola.runtime.controlling.events import Recorder, Regarding


class OwnWrites:
    """Writes to ManagedResources, each based on the newest known state."""

    def __init__(
        self,
        source: Source,
        completions: Completions,
        events: Recorder,
        refusals: "Refusals",
        clock: Clock,
    ) -> None:
        self._source = source
        self._completions = completions
        self._events = events
        self._refusals = refusals
        self._clock = clock
        self._status = StatusWriter(source)
        self._refused: dict[Key, str] = {}
        self._unrecorded: dict[Key, list[JsonObject]] = {}

    def begin(self, key: Key) -> None:
        """Begin a run: forget whether the API server refused a status in the last one."""
        self._refused.pop(key, None)

    def forget(self, key: Key) -> None:
        """Forget a ManagedResource that is gone."""
        self._refused.pop(key, None)
        self._unrecorded.pop(key, None)

    def refusal(self, key: Key) -> str:
        """Return why the API server refused a status in this run; empty if it did not."""
        return self._refused.get(key, "")

    def unrecorded(self, key: Key) -> list[JsonObject]:
        """Return the managed objects that the status lacks, because it could not be written."""
        return self._unrecorded.get(key, [])

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
        halfway (spec 10 §4.4, B10). If the API server refuses the record, it is kept in memory.
        """
        key = Key.of(resource)
        unrecorded = self.unrecorded(key)

        def change(newest: JsonObject) -> JsonObject:
            status = map_at(newest, "status")
            present = maps_at(status, "resources")
            known = status.get("secretsDataChecksum") == plan.checksum
            if known and same_references(work.recorded, present):
                return status
            conditions = Conditions(newest, self._clock.now())
            conditions.pending()
            union = work.union(_union(present, unrecorded))
            return {**status, "conditions": conditions.items, "resources": union}

        announced = await self._record(resource, change)
        if self.refusal(key):
            present = maps_at(resource, "status", "resources")
            known = set(map(object_key, present))
            union = work.union(_union(present, unrecorded))
            self._unrecorded[key] = [r for r in union if object_key(r) not in known]
        else:
            self._unrecorded.pop(key, None)
        return announced

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
        is_held = is_announced(resource) and not plan.errors
        if is_held and not self.refusal(Key.of(resource)):
            self._completions.hold(resource, fields, remarks)
            return

        def set_conditions(conditions: Conditions) -> None:
            if plan.errors:
                conditions.failed(Reason.DECODING_FAILED, errors_message(plan.errors))
            else:
                conditions.applied(remarks)

        self.begin(Key.of(resource))  # the final status may fit although the first did not
        await self._write(resource, set_conditions, fields)
        if not self.refusal(Key.of(resource)):
            self._unrecorded.pop(Key.of(resource), None)

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

        return await self._record(resource, change)

    async def _record(self, resource: JsonObject, change: Change) -> JsonObject:
        """Write a status; if the API server refuses it, report that and continue."""
        try:
            return await self._status.write(resource, change) or resource
        except ApiError as error:
            if not _is_refusal(error):
                raise
            text = (
                f"the status cannot be written, so it is outdated; objects are applied, repaired "
                f"and deleted nevertheless: {error}"
            )
            self._refused[Key.of(resource)] = text
            self._refusals.count()
            self._events.warning(Regarding.of(resource), "StatusNotWritten", text)
            return resource


def _is_refusal(error: ApiError) -> bool:
    """Return whether the API server refuses a status whatever happens elsewhere.

    It may be too large, or a policy may forbid it.
    """
    passing = Conflict | TooManyRequests | Unauthorized
    return not isinstance(error, passing) and not is_outage(error)


def _union(present: list[JsonObject], more: list[JsonObject]) -> list[JsonObject]:
    known = set(map(object_key, present))
    return [*present, *(ref for ref in more if object_key(ref) not in known)]


class Refusals:
    """The metric of statuses that the API server refused."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._total = Counter(
            "pergola_managed_resource_status_refused",
            "Statuses of ManagedResources that the API server refused",
            registry=registry,
        )

    def count(self) -> None:
        """Count a refused status."""
        self._total.inc()
