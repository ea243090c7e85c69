"""Reconciliation of ManagedResources (spec 10 §4)."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pergola.api import marks
from pergola.api.kinds import SECRET
from pergola.api.managed_resource_conditions import Reason
from pergola.api.objects import JsonObject, Key, map_at, maps_at
from pergola.kube.errors import KubeError
from pergola.resource_manager.controllers.managed_resource.apply import Applier
from pergola.resource_manager.controllers.managed_resource.circles import needed_objects
from pergola.resource_manager.controllers.managed_resource.completions import Completions
from pergola.resource_manager.controllers.managed_resource.conditions import (
    Conditions,
    applied_remarks,
    errors_message,
)
from pergola.resource_manager.controllers.managed_resource.deletion import RETRY_SECONDS, Deletion
from pergola.resource_manager.controllers.managed_resource.merge import MergeOptions
from pergola.resource_manager.controllers.managed_resource.own_writes import OwnWrites, Refusals
from pergola.resource_manager.controllers.managed_resource.plan import Plan
from pergola.resource_manager.controllers.managed_resource.planning import Planner
from pergola.resource_manager.controllers.managed_resource.prune import Pending, Pruner
from pergola.resource_manager.controllers.managed_resource.references import object_key
from pergola.resource_manager.controllers.managed_resource.scaled import ScaleTargetError
from pergola.resource_manager.controllers.managed_resource.secrets import UnreadableSecret
from pergola.resource_manager.controllers.managed_resource.work import Work
from pergola.resource_manager.controllers.secret import SecretRelease
from pergola.resource_manager.origin import Origin
from pergola.resource_manager.source import SeenResource, Source
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.controller import (
    DONE,
    Again,
    DependencyMissing,
    Outcome,
    ReconcileError,
)
from pergola.runtime.controlling.events import Recorder, Regarding

UNWATCHED_SECONDS: Final = 30.0
"""Seconds between two looks at objects that cannot be watched."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of this controller; times in seconds.

    Attributes:
        managed_by: the value of the label on all managed objects.
    """

    workers: int = 5
    sync_period: float = 60.0
    always_update: bool = False
    managed_by: str = "gardener"


class ManagedResources:
    """The reconciler of all ManagedResources of a source and a target."""

    def __init__(
        self,
        source: Source,
        secrets: SecretRelease,
        planner: Planner,
        applier: Applier,
        pruner: Pruner,
        completions: Completions,
        settings: Settings,
        cluster_id: str,
        events: Recorder,
        refusals: Refusals,
        clock: Clock,
    ) -> None:
        self._source = source
        self._planner = planner
        self._applier = applier
        self._pruner = pruner
        self._settings = settings
        self._cluster_id = cluster_id
        self._events = events
        self._completions = completions
        self._writes = OwnWrites(source, completions, events, refusals, clock)
        self._deletion = Deletion(source, self._writes, pruner, applier.settled, secrets, events)
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
        self._completions.drop(key)
        self._writes.begin(key)
        resource = seen.unpack()
        if seen.operation == marks.OPERATION_RECONCILE and (seen.deleting or not seen.ignored):
            resource = await self._writes.remove_operation(resource)
            listed = maps_at(resource, "status", "resources")
            self._applier.settled.distrust(map(object_key, listed))
        if seen.ignored and not seen.deleting:
            self._applier.leave(self._owner(key))
            await self._writes.write_conditions(resource, Conditions.ignored)
            return DONE
        if seen.deleting or mine.must_clean_up(seen.resource_class, seen.finalizers):
            return await self._delete(resource)
        if mine.must_wait(seen.resource_class, seen.finalizers):
            return DONE
        return await self._apply(resource, seen)

    async def _delete(self, resource: JsonObject) -> Outcome:
        owner = self._owner(Key.of(resource))
        self._applier.leave(owner)
        outcome = await self._deletion.delete(resource, owner)
        if outcome == DONE:
            self._forget(Key.of(resource))
        return outcome

    # Applying

    async def _apply(self, resource: JsonObject, seen: SeenResource) -> Outcome:
        if self._source.responsibility.finalizer not in seen.finalizers:
            resource = await self._writes.add_finalizer(resource)
        owner = self._owner(Key.of(resource))
        plan = await self._plan(resource)
        work = Work.of(resource, plan, self._writes.unrecorded(Key.of(resource)))
        resource = await self._writes.announce(resource, plan, work)
        # Before anything is deleted: of two that drop an object at once, the last one deletes it.
        self._applier.need(owner, work.desired, work.recorded if plan.errors else ())
        left = await self._delete_obsolete(resource, work, owner)
        if not all(pending.is_outage for pending in left):
            return Again(RETRY_SECONDS)
        if problems := await self._pruner.release(work.released, owner):
            text = errors_message(problems)
            raise await self._writes.write_failure(resource, Reason.RELEASE_FAILED, text)
        needed = await needed_objects(
            resource,
            ((planned.gvk, planned.key) for planned in work.desired),
            source=self._source.client,
            target=self._pruner.target.client,
        )
        work = without_secrets(work, needed)
        again = await self._apply_objects(resource, work, owner, plan.errors)
        if left:
            return Again(RETRY_SECONDS)
        shared = self._applier.shared(Key.of(resource), work.desired)
        unwatched = self._applier.unwatched(work.desired)
        remarks = [*needed.values(), *shared, *unwatched, *self._applier.remarks(work.desired)]
        self._report_new(resource, shared, "DescribedTwice")
        self._report_new(resource, needed.values(), "DescribesItself")
        self._report_new(resource, unwatched, "CannotWatch")
        await self._writes.finish(resource, plan, work, remarks)
        if refusal := self._writes.refusal(Key.of(resource)):
            raise ReconcileError(refusal)
        waits = (
            self._settings.sync_period,
            again,
            self._applier.remarks_end_in(work.desired),
            UNWATCHED_SECONDS if unwatched else None,
        )
        return Again(min(wait for wait in waits if wait))

    async def _delete_obsolete(
        self, resource: JsonObject, work: Work, owner: Origin
    ) -> list[Pending]:
        """Delete objects that are no longer described; return those that still exist.

        Applying waits for them, except for those of an API group that does not answer: applying
        may be what repairs it.
        """
        if not work.obsolete:
            return []
        return await self._deletion.delete_objects(resource, work.obsolete, owner)

    async def _plan(self, resource: JsonObject) -> Plan:
        failed = self._writes.write_failure
        try:
            return await self._planner.plan(resource)
        except UnreadableSecret as error:
            raise await failed(resource, Reason.CANNOT_READ_SECRET, str(error)) from error
        except KubeError as error:
            text = f"cannot ask the target which kinds it serves: {error}"
            raise await failed(resource, Reason.APPLY_FAILED, text) from error

    async def _apply_objects(
        self, resource: JsonObject, work: Work, owner: Origin, unreadable: Sequence[str]
    ) -> float | None:
        """Apply objects that are not known to be right; return the wait for throttled repairs.

        Args:
            unreadable: errors of documents, to report beside those of objects.
        """
        try:
            options = await self._options(resource, work, owner)
        except (KubeError, ScaleTargetError) as error:
            raise await self._writes.write_failure(
                resource, Reason.APPLY_FAILED, str(error)
            ) from error
        always = self._is_update_due(Key.of(resource))
        settled = self._applier.settled
        if not always and all(settled.includes(planned, options) for planned in work.desired):
            return None
        outcome = await self._applier.apply(work.desired, options, always=always)
        for remark in outcome.fights:
            self._events.warning(Regarding.of(resource), "RepairHeldBack", remark)
        if outcome.errors:
            text = errors_message([*outcome.errors, *unreadable])
            kind = DependencyMissing if outcome.only_waits else ReconcileError
            raise await self._writes.write_failure(resource, Reason.APPLY_FAILED, text, error=kind)
        if always:
            self._updated_at[Key.of(resource)] = asyncio.get_running_loop().time()
        return outcome.again_seconds

    async def _options(self, resource: JsonObject, work: Work, owner: Origin) -> MergeOptions:
        spec = map_at(resource, "spec")
        return MergeOptions(
            origin=str(owner),
            labels=self._planner.injected(resource),
            force_labels=bool(spec.get("forceOverwriteLabels")),
            force_annotations=bool(spec.get("forceOverwriteAnnotations")),
            scaled=await self._planner.scaled(resource, work.desired),
        )

    def _report_new(self, resource: JsonObject, remarks: Iterable[str], reason: str) -> None:
        """Report remarks in Events that the condition does not contain yet."""
        known = applied_remarks(resource)
        for remark in remarks:
            if remark not in known:
                self._events.warning(Regarding.of(resource), reason, remark)

    def _is_update_due(self, key: Key) -> bool:
        """Return whether `alwaysUpdate` requires updates of equal objects, once per sync period."""
        if not self._settings.always_update:
            return False
        last = self._updated_at.get(key)
        now = asyncio.get_running_loop().time()
        return last is None or now - last >= self._settings.sync_period * 0.9

    def _owner(self, key: Key) -> Origin:
        return Origin(self._cluster_id, key.namespace, key.name)

    def _forget(self, key: Key) -> None:
        self._applier.leave(self._owner(key))
        self._writes.forget(key)
        self._completions.drop(key)
        self._planner.forget(key)
        self._updated_at.pop(key, None)


def without_secrets(work: Work, needed: Mapping[str, str]) -> Work:
    """Return the work without the Secrets that contain the manifests: they would be overwritten."""
    if not needed:
        return work
    desired = [
        planned
        for planned in work.desired
        if planned.object_key not in needed or planned.gvk.group_kind != SECRET.group_kind
    ]
    return replace(work, desired=desired)
