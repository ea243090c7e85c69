"""Application of manifests to the target (spec 10 §4.8).

Kinds are applied in order, and the objects of one kind together. A failure blocks only objects that
depend on the failed one: the instances of a CRD, the content of a Namespace (spec 10 B10). A write
that would change nothing is not sent.
"""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pergola.api import marks
from pergola.api.kinds import SERVICE
from pergola.api.objects import JsonObject, Key, annotations_of, resource_version_of
from pergola.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Invalid,
    KubeError,
    NotFound,
    Unauthorized,
    Unreachable,
    lacks_dependency,
)
from pergola.resource_manager.controllers.managed_resource.compare import needs_update
from pergola.resource_manager.controllers.managed_resource.errors import (
    ManifestError,
    error_text,
)
from pergola.resource_manager.controllers.managed_resource.fights import FightLimit
from pergola.resource_manager.controllers.managed_resource.merge import (
    MergeOptions,
    for_creation,
    merge,
    without_server_fields,
)
from pergola.resource_manager.controllers.managed_resource.opponents import (
    fight_remark,
    opponent_in,
)
from pergola.resource_manager.controllers.managed_resource.order import depends_on, waves
from pergola.resource_manager.controllers.managed_resource.owners import check_owners
from pergola.resource_manager.controllers.managed_resource.plan import Planned
from pergola.resource_manager.controllers.managed_resource.prune import describe
from pergola.resource_manager.controllers.managed_resource.recreate import (
    ApplyRefused,
    delete_to_recreate,
)
from pergola.resource_manager.controllers.managed_resource.references import object_key
from pergola.resource_manager.controllers.managed_resource.services import kept_address
from pergola.resource_manager.controllers.managed_resource.settled import Settled
from pergola.resource_manager.origin import Origin
from pergola.resource_manager.target import Target
from pergola.runtime.logging import get_logger
from pergola.runtime.task_group import TaskGroup

log = get_logger("managedresource")

_AT_ONCE: Final = 8
_CONFLICTS: Final = 4


@dataclass(slots=True)
class Applied:
    """The result of an apply.

    Attributes:
        errors: the failures, each naming its object.
        again_seconds: when a throttled repair may continue; None if none was held back.
        fatal: whether the server is unusable, so that every other object would fail as well.
        only_waits: whether all failures lack a namespace or kind that may still appear.
        fights: remarks about repairs that are held back, if they are new.
    """

    errors: list[str] = field(default_factory=list)
    again_seconds: float | None = None
    fatal: bool = False
    only_waits: bool = True
    fights: list[str] = field(default_factory=list)

    def failed(self, planned: Planned, error: Exception) -> None:
        """Record why an object could not be applied."""
        self.errors.append(_text(planned, error))
        self.only_waits &= lacks_dependency(error)

    def hold_back(self, seconds: float) -> None:
        """Record that a repair has to wait."""
        self.again_seconds = min(seconds, self.again_seconds or seconds)


@dataclass(frozen=True, slots=True)
class _Pass:
    """The inputs shared by all objects of one apply.

    Attributes:
        always: send an update even if nothing differs.
    """

    options: MergeOptions
    always: bool
    outcome: Applied


class Applier:
    """The writer of planned objects to one target.

    Attributes:
        settled: the objects known to match their manifests.
    """

    def __init__(self, target: Target, fights: FightLimit) -> None:
        self.settled = Settled(target)
        self._target = target
        self._fights = fights
        self._kept: dict[str, str] = {}

    async def apply(
        self, objects: Sequence[Planned], options: MergeOptions, *, always: bool
    ) -> Applied:
        """Apply all objects in order of kind; continue after an object that failed.

        Args:
            always: send an update even if nothing differs.
        """
        outcome = Applied()
        this = _Pass(options, always, outcome)
        failed: list[Planned] = []
        limit = asyncio.Semaphore(_AT_ONCE)

        async def one(planned: Planned) -> None:
            async with limit:
                if outcome.fatal:
                    return
                try:
                    await self._apply_one(planned, this)
                except (KubeError, ManifestError, ApplyRefused) as error:
                    failed.append(planned)
                    outcome.failed(planned, error)
                    outcome.fatal |= await self._is_fatal(error)

        for wave in waves(objects):
            ready = [p for p in wave if always or not self.settled.includes(p, options)]
            ready = [p for p in ready if not depends_on(p, failed)]
            if not ready:
                continue
            async with TaskGroup() as group:
                for planned in ready[1:]:
                    group.create_task(one(planned))
                await one(ready[0])  # most waves have one object, which needs no task
            if outcome.fatal:
                break
        return outcome

    async def _is_fatal(self, error: Exception) -> bool:
        """Return whether every other object would fail as well."""
        if isinstance(error, Unreachable):
            return not await self._target.answers()
        return isinstance(error, Unauthorized)

    def need(
        self, owner: Origin, objects: Sequence[Planned], kept: Iterable[JsonObject] = ()
    ) -> None:
        """Record which objects a ManagedResource describes; see `Target.need`.

        Args:
            kept: references of further objects, which manifests that cannot be read may describe.
        """
        describers, keys = self._target.describers, {planned.object_key for planned in objects}
        keys.update(map(object_key, kept))
        self._leave(owner, describers.described(owner.key) - keys)
        self._target.need(owner.key, {planned.gvk for planned in objects})
        describers.set(owner.key, keys)

    def leave(self, owner: Origin) -> None:
        """Record that a ManagedResource describes nothing, because it is gone, going or ignored."""
        self._leave(owner, self._target.describers.described(owner.key))
        self._target.need(owner.key, ())
        self._target.describers.drop(owner.key)

    def _leave(self, owner: Origin, object_keys: Collection[str]) -> None:
        self.settled.leave(str(owner), object_keys)
        for key in object_keys:
            self._kept.pop(key, None)

    def shared(self, resource: Key, objects: Iterable[Planned]) -> list[str]:
        """Return remarks about the objects that other ManagedResources describe as well."""
        return [
            shared_remark(planned, others)
            for planned in objects
            if (others := self._others(planned, resource))
        ]

    def _others(self, planned: Planned, resource: Key) -> list[Key]:
        describing = self._target.describers.of(planned.object_key)
        others = [key for key in describing if key != resource]
        if others and marks.is_truthy(
            annotations_of({"metadata": planned.reference}).get(marks.IGNORE)
        ):
            return []  # this one leaves the object to the others
        return others

    async def _apply_one(self, planned: Planned, this: _Pass) -> None:
        await self._target.watch(planned.gvk)
        manifest = planned.manifest()
        if marks.is_truthy(annotations_of(manifest).get(marks.IGNORE)):
            self._fights.end(planned.object_key)
            await self._apply_ignored(planned, manifest)
            return
        live = await self._read(planned)
        if live is None:
            if await self._is_held_back(planned, this):
                return
            has_drifted = self.settled.was_reached(planned, this.options)
            live = await self._create(planned, manifest, this)
            if live is None and has_drifted:
                self._fights.repaired(planned.object_key)
        if live is not None:
            await self._update(planned, manifest, live, this)

    def unwatched(self, objects: Iterable[Planned]) -> list[str]:
        """Return remarks about the kinds of objects that cannot be watched."""
        return [
            f"objects of kind {gvk} cannot be watched, so that changes by others are noticed late: "
            f"{reason}"
            for gvk in sorted({planned.gvk for planned in objects})
            if (reason := self._target.unwatched(gvk))
        ]

    def remarks(self, objects: Iterable[Planned]) -> list[str]:
        """Return remarks about objects that others keep changing, or that keep an address."""
        keys = [planned.object_key for planned in objects]
        found = (
            remark for key in keys for remark in (self._kept.get(key), self._fights.remark(key))
        )
        return [remark for remark in found if remark]

    def remarks_end_in(self, objects: Iterable[Planned]) -> float | None:
        """Return the seconds until the first of these remarks is outdated; None without any."""
        keys = (planned.object_key for planned in objects)
        return min((self._fights.ends_in(k) for k in keys if self._fights.remark(k)), default=None)

    async def _read(self, planned: Planned) -> JsonObject | None:
        """Return the live object, or None if the watch knows of none."""
        trusted = not self.settled.is_distrusted(planned)
        if trusted and self._target.covers(planned.gvk, planned.key):
            seen = self._target.seen(planned.gvk, planned.key)
            if seen is None:
                return None
            kept = seen.unpack()
            if kept is not None:
                return kept
        return await self._target.live(planned.gvk, planned.key)

    async def _create(
        self, planned: Planned, manifest: JsonObject, this: _Pass
    ) -> JsonObject | None:
        """Create the object; return None, or the live object if it exists after all.

        The watch covers only labelled objects, and an existing object can make the creation fail
        for reasons other than its name, such as a quota.
        """
        if self.settled.was_reached(planned, this.options):
            await check_owners(self._target.client, manifest)
        try:
            created = await self._target.client.create(for_creation(manifest, this.options))
        except ApiError as error:
            live = await self._target.live(planned.gvk, planned.key)
            if live is None:
                raise
            log.debug("object exists", object=planned.object_key, error=str(error))
            return live
        self._kept.pop(planned.object_key, None)
        self.settled.remember(planned, this.options, created)
        log.info("object created", object=planned.object_key)
        return None

    async def _apply_ignored(self, planned: Planned, manifest: JsonObject) -> None:
        live = await self._target.live(planned.gvk, planned.key)
        if live is None:
            try:
                await self._target.client.create(without_server_fields(manifest))
            except AlreadyExists:
                return
            log.info("object created", object=planned.object_key, ignored=True)
        elif marks.DESCRIPTION in annotations_of(live):
            body = {"metadata": {"annotations": {marks.DESCRIPTION: None}}}
            await self._target.client.patch(planned.gvk, planned.key, body)

    # Updating: each attempt ends, or leads to another state of the live object

    async def _update(
        self, planned: Planned, manifest: JsonObject, live: JsonObject, this: _Pass
    ) -> None:
        """Update the object; after a conflict decide again, and create it if it was deleted."""
        for attempt in range(_CONFLICTS):
            merged = merge(manifest, live, previous=planned.previous, options=this.options)
            self._note_address(planned, manifest, live)
            if await self._needs_no_write(planned, live, merged, this):
                return
            found: JsonObject | None = None
            try:
                await self._write(planned, live, merged, this)
            except Conflict:
                if attempt + 1 == _CONFLICTS:
                    raise
                found = await self._target.live(planned.gvk, planned.key)
            except NotFound:
                pass
            except Invalid as error:
                await delete_to_recreate(self._target.client, planned, merged, live, error)
            else:
                return
            if found is None:
                await self._create(planned, manifest, this)
                return
            live = found

    def _note_address(self, planned: Planned, manifest: JsonObject, live: JsonObject) -> None:
        """Store a remark if a Service keeps an address that its manifest does not have."""
        self._kept.pop(planned.object_key, None)
        if planned.gvk.group_kind != SERVICE.group_kind:
            return
        if address := kept_address(manifest, live):
            self._kept[planned.object_key] = (
                f"{describe(planned.reference)} keeps its clusterIP {address}, which cannot "
                "change; delete the Service to follow its manifest"
            )

    async def _needs_no_write(
        self, planned: Planned, live: JsonObject, merged: JsonObject, this: _Pass
    ) -> bool:
        """Return whether the object is already right, or its repair is held back."""
        if this.always:
            return False
        # An object that matched may differ by what its API server adds: defaults of a custom kind.
        is_known = self.settled.includes_live(planned, this.options, live)
        origin = annotations_of(live).get(marks.ORIGIN, "")
        if self.settled.is_left_to_other(planned, this.options, origin):
            merged = _with_origin(merged, origin)
        if is_known or not needs_update(live, merged):
            self.settled.remember(planned, this.options, live)
            return True
        return await self._is_held_back(planned, this)

    async def _is_held_back(self, planned: Planned, this: _Pass) -> bool:
        """Return whether an object drifted that was repaired too often recently."""
        if this.always or not self.settled.was_reached(planned, this.options):
            return False
        delay = self._fights.delay(planned.object_key)
        if delay <= 0:
            return False
        this.outcome.hold_back(delay)
        if self._fights.needs_remark(planned.object_key):
            remark = await self._fight_remark(planned, this.options.origin)
            self._fights.note(planned.object_key, remark)
            this.outcome.fights.append(remark)
            log.info("repair held back", object=planned.object_key, seconds=round(delay, 1))
        return True

    async def _fight_remark(self, planned: Planned, owner: str) -> str:
        live = await self._target.live(planned.gvk, planned.key)  # caches have no managed fields
        opponent, since = opponent_in(live, owner), self._fights.since(planned.object_key)
        return fight_remark(describe(planned.reference), opponent, since, planned.manifest())

    async def _write(
        self, planned: Planned, live: JsonObject, merged: JsonObject, this: _Pass
    ) -> None:
        """Update the object; count a repair if that reverted what another client did."""
        has_drifted = not this.always and self.settled.was_reached(planned, this.options)
        updated = await self._target.client.update(merged)
        self.settled.remember(planned, this.options, updated)
        if resource_version_of(updated) == resource_version_of(live):
            return
        log.info("object updated", object=planned.object_key)
        if has_drifted:
            self._fights.repaired(planned.object_key)


def _with_origin(obj: JsonObject, origin: str) -> JsonObject:
    annotations = {**annotations_of(obj), marks.ORIGIN: origin}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def shared_remark(planned: Planned, others: Sequence[Key]) -> str:
    """Return a sentence about an object that other ManagedResources describe as well."""
    named = ", ".join(sorted(map(str, others)))
    return (
        f"{describe(planned.reference)} is also described by ManagedResource {named}: each "
        "overwrites what the others wrote. Describe it in one of them only"
    )


def _text(planned: Planned, error: Exception) -> str:
    if isinstance(error, Conflict):
        return str(error)
    text = error_text(error, planned.gvk)
    return f"error during apply of object {describe(planned.reference)}: {text}"
