"""Keeping the objects of the target as the ManagedResources describe them (spec 10 §4)."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

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
from pergola.kube.errors import KubeError, NotFound
from pergola.resource_manager.controllers.managed_resource.apply import Applier
from pergola.resource_manager.controllers.managed_resource.conditions import (
    Conditions,
    errors_message,
)
from pergola.resource_manager.controllers.managed_resource.merge import MergeOptions
from pergola.resource_manager.controllers.managed_resource.origin import Origin
from pergola.resource_manager.controllers.managed_resource.plan import Plan, Planned
from pergola.resource_manager.controllers.managed_resource.planning import Planner
from pergola.resource_manager.controllers.managed_resource.prune import Pruner, pending_message
from pergola.resource_manager.controllers.managed_resource.references import (
    Equivalences,
    object_key,
    same_references,
    sort_references,
)
from pergola.resource_manager.controllers.managed_resource.scaled import ScaleTargetError
from pergola.resource_manager.controllers.managed_resource.secrets import UnreadableSecret
from pergola.resource_manager.controllers.secret import Secrets
from pergola.resource_manager.source import SeenResource, Source
from pergola.resource_manager.status import StatusWriter
from pergola.resource_manager.target import Target
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.controller import DONE, Again, Outcome, ReconcileError
from pergola.runtime.logging import get_logger

log = get_logger("managedresource")

DELETION_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What the configuration says about this controller; times in seconds.

    Attributes:
        managed_by: the value of the label on all managed objects.
    """

    workers: int = 5
    sync_period: float = 60.0
    always_update: bool = False
    managed_by: str = "gardener"


class ManagedResources:
    """The reconciler; one for all ManagedResources of a source and a target."""

    def __init__(
        self,
        source: Source,
        target: Target,
        secrets: Secrets,
        planner: Planner,
        applier: Applier,
        pruner: Pruner,
        settings: Settings,
        cluster_id: str,
        clock: Clock,
    ) -> None:
        self._source = source
        self._target = target
        self._planner = planner
        self._applier = applier
        self._pruner = pruner
        self._settings = settings
        self._cluster_id = cluster_id
        self._clock = clock
        self._status = StatusWriter(source)
        self._secrets = secrets
        self._updated_at: dict[Key, float] = {}

    async def reconcile(self, key: Key) -> Outcome:
        """Reconcile one ManagedResource: the entry decisions of spec 10 §4.2, in order."""
        seen = self._source.resource(key)
        mine = self._source.responsibility
        if seen is None:
            self._forget(key)
            return DONE
        if not mine.concerns(seen.resource_class, seen.finalizers):
            return DONE
        if seen.operation == marks.OPERATION_WAIT_FOR_STATE:
            return DONE
        resource = seen.unpack()
        if seen.operation == marks.OPERATION_RECONCILE and (seen.deleting or not seen.ignored):
            resource = await self._remove_operation(resource)
            listed = maps_at(resource, "status", "resources")
            self._applier.distrust([object_key(reference) for reference in listed])
        if seen.ignored and not seen.deleting:
            await self._status.write(resource, self._conditions(Conditions.ignored))
            return DONE
        if seen.deleting:
            return await self._delete(resource)
        if mine.must_clean_up(seen.resource_class, seen.finalizers):
            return await self._delete(resource)
        if mine.must_wait(seen.resource_class, seen.finalizers):
            return DONE
        return await self._apply(resource, seen)

    # Applying

    async def _apply(self, resource: JsonObject, seen: SeenResource) -> Outcome:
        if self._source.responsibility.finalizer not in seen.finalizers:
            resource = await self._add_finalizer(resource)
        owner = self._owner(resource)
        try:
            plan = await self._planner.plan(resource)
        except UnreadableSecret as error:
            raise await self._failed(resource, Reason.CANNOT_READ_SECRET, str(error)) from error
        except KubeError as error:
            text = f"cannot ask the target which kinds it serves: {error}"
            raise await self._failed(resource, Reason.APPLY_FAILED, text) from error

        work = _Work.of(resource, plan)
        resource = await self._announce(resource, plan, work)
        if work.obsolete:
            pending = await self._pruner.delete(
                work.obsolete, owner, claims=_deletes_claims(resource)
            )
            if pending:
                await self._write(resource, lambda c: c.deletion_pending(pending_message(pending)))
                return Again(DELETION_SECONDS)
            self._applier.forget([object_key(r) for r in work.obsolete])
        if work.released:
            problems = await self._pruner.release(work.released, owner)
            if problems:
                text = errors_message(problems)
                raise await self._failed(resource, Reason.RELEASE_FAILED, text)

        again = await self._apply_objects(resource, work, owner)
        await self._finish(resource, plan, work)
        return Again(min(self._settings.sync_period, again or self._settings.sync_period))

    async def _apply_objects(
        self, resource: JsonObject, work: "_Work", owner: Origin
    ) -> float | None:
        always = self._is_update_due(Key.of(resource))
        if not always and all(self._applier.is_settled(p) for p in work.wanted):
            return None
        try:
            scaled = await self._planner.scaled(resource, work.wanted)
        except (KubeError, ScaleTargetError) as error:
            raise await self._failed(resource, Reason.APPLY_FAILED, str(error)) from error
        spec = map_at(resource, "spec")
        options = MergeOptions(
            origin=str(owner),
            labels=self._planner.injected(resource),
            force_labels=bool(spec.get("forceOverwriteLabels")),
            force_annotations=bool(spec.get("forceOverwriteAnnotations")),
            scaled=scaled,
        )
        outcome = await self._applier.apply(work.wanted, options, always=always)
        if outcome.errors:
            text = errors_message(outcome.errors)
            raise await self._failed(resource, Reason.APPLY_FAILED, text)
        if always:
            self._updated_at[Key.of(resource)] = asyncio.get_running_loop().time()
        return outcome.again_seconds

    def _is_update_due(self, key: Key) -> bool:
        """Whether `alwaysUpdate` requires updates even of equal objects, once in a sync period."""
        if not self._settings.always_update:
            return False
        last = self._updated_at.get(key)
        now = asyncio.get_running_loop().time()
        return last is None or now - last >= self._settings.sync_period * 0.9

    async def _announce(self, resource: JsonObject, plan: Plan, work: "_Work") -> JsonObject:
        """Write, before anything is done, that the content changed and what will be created.

        An object is recorded before it is created, so that none is forgotten if the run ends in
        the middle (spec 10 §4.4, B10).
        """
        status = map_at(resource, "status")
        present = maps_at(resource, "status", "resources")
        if (
            same_references(work.recorded, present)
            and status.get("secretsDataChecksum") == plan.checksum
        ):
            return resource
        union = work.union(present)

        def change(newest: JsonObject) -> JsonObject:
            conditions = Conditions(newest, self._clock.now())
            conditions.pending()
            return {
                **map_at(newest, "status"),
                "conditions": conditions.items,
                "resources": union,
            }

        return await self._status.write(resource, change) or resource

    async def _finish(self, resource: JsonObject, plan: Plan, work: "_Work") -> None:
        def change(newest: JsonObject) -> JsonObject:
            conditions = Conditions(newest, self._clock.now())
            if plan.errors:
                conditions.failed(Reason.DECODING_FAILED, errors_message(plan.errors))
            else:
                conditions.applied()
            return {
                **map_at(newest, "status"),
                "conditions": conditions.items,
                "observedGeneration": generation_of(resource),
                "secretsDataChecksum": plan.checksum,
                "resources": work.recorded,
            }

        await self._status.write(resource, change)

    # Deleting

    async def _delete(self, resource: JsonObject) -> Outcome:
        """Delete everything that is managed (spec 10 §4.10), also to hand over to another class."""
        key = Key.of(resource)
        finalizer = self._source.responsibility.finalizer
        if finalizer not in finalizers_of(resource):
            self._forget(key)
            return DONE
        keep = bool(map_at(resource, "spec").get("keepObjects"))
        resource = await self._write(resource, lambda c: c.deleting(keep_objects=keep))
        if not keep:
            references = maps_at(resource, "status", "resources")
            pending = await self._pruner.delete(
                references,
                self._owner(resource),
                claims=_deletes_claims(resource),
            )
            if pending:
                await self._write(resource, lambda c: c.deletion_pending(pending_message(pending)))
                return Again(DELETION_SECONDS)
            self._applier.forget([object_key(r) for r in references])
        async with self._secrets.leaving(key):
            await self._remove_finalizer(resource, finalizer)
        self._forget(key)
        return DONE

    # Writing to the ManagedResource

    async def _add_finalizer(self, resource: JsonObject) -> JsonObject:
        finalizers = [*finalizers_of(resource), self._source.responsibility.finalizer]
        return await self._patch(resource, {"finalizers": finalizers})

    async def _remove_finalizer(self, resource: JsonObject, finalizer: str) -> None:
        newest = self._source.resource(Key.of(resource))
        if newest is not None:
            resource = newest.unpack()
        finalizers = [f for f in finalizers_of(resource) if f != finalizer]
        try:
            await self._patch(resource, {"finalizers": finalizers})
        except NotFound:
            return

    async def _remove_operation(self, resource: JsonObject) -> JsonObject:
        return await self._patch(resource, {"annotations": {marks.OPERATION: None}})

    async def _patch(self, resource: JsonObject, metadata: JsonObject) -> JsonObject:
        metadata = {**metadata, "resourceVersion": resource_version_of(resource)}
        patched = await self._source.client.patch(
            MANAGED_RESOURCE, Key.of(resource), {"metadata": metadata}
        )
        self._source.observe(patched)
        return patched

    async def _failed(self, resource: JsonObject, reason: str, message: str) -> ReconcileError:
        """Report a failure in the condition; returns the error to raise for the backoff."""
        await self._write(resource, lambda c: c.failed(reason, message))
        return ReconcileError(message)

    async def _write(
        self, resource: JsonObject, set_conditions: Callable[[Conditions], None]
    ) -> JsonObject:
        return await self._status.write(resource, self._conditions(set_conditions)) or resource

    def _conditions(
        self, set_conditions: Callable[[Conditions], None]
    ) -> Callable[[JsonObject], JsonObject]:
        def change(newest: JsonObject) -> JsonObject:
            conditions = Conditions(newest, self._clock.now())
            set_conditions(conditions)
            return {**map_at(newest, "status"), "conditions": conditions.items}

        return change

    def _owner(self, resource: JsonObject) -> Origin:
        key = Key.of(resource)
        return Origin(self._cluster_id, key.namespace, key.name)

    def _forget(self, key: Key) -> None:
        self._planner.forget(key)
        self._updated_at.pop(key, None)


@dataclass(frozen=True, slots=True)
class _Work:
    """What one run has to do: which objects are wanted, and which were but are not any more."""

    wanted: Sequence[Planned]
    recorded: list[JsonObject]
    obsolete: list[JsonObject]
    released: list[JsonObject]

    @classmethod
    def of(cls, resource: JsonObject, plan: Plan) -> "_Work":
        """Compare a plan with what the status says was managed before (spec 10 §4.5)."""
        equivalences = Equivalences.of(map_at(resource, "spec"))
        before = equivalences.index(maps_at(resource, "status", "resources"))
        wanted = [planned.after(before.take(planned.reference)) for planned in plan.objects]
        released = [r for r in map(before.take, plan.released) if r is not None]
        left = before.left()
        references = [planned.reference for planned in wanted]
        if plan.errors:
            # What cannot be read may describe what seems to be gone: keep it all (spec 10 B1).
            return cls(wanted, sort_references([*references, *left, *released]), [], [])
        return cls(wanted, sort_references(references), left, released)

    def union(self, present: Sequence[JsonObject]) -> list[JsonObject]:
        """Return what was managed, unchanged, and what will be managed in addition."""
        known = {object_key(reference) for reference in present}
        new = [r for r in self.recorded if object_key(r) not in known]
        return sort_references([*present, *new])


def _deletes_claims(resource: JsonObject) -> bool:
    return bool(map_at(resource, "spec").get("deletePersistentVolumeClaims"))
