"""Making the objects of the target equal to their manifests (spec 10 §4.8).

Kinds go in order; the objects of one kind go together. What failed holds back only what depends on
it: a CRD its instances, a Namespace its content (spec 10 B10). A write that would change nothing is
not sent: what was found equal once is remembered with a digest of the live object, so that a steady
ManagedResource costs no request at all (spec 10 B7).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pergola.api import marks
from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    resource_version_of,
    uid_of,
)
from pergola.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Invalid,
    KubeError,
    NotFound,
    Unauthorized,
    Unreachable,
)
from pergola.resource_manager.controllers.managed_resource.compare import (
    content_digest,
    needs_update,
)
from pergola.resource_manager.controllers.managed_resource.errors import ManifestError
from pergola.resource_manager.controllers.managed_resource.fights import FightLimit
from pergola.resource_manager.controllers.managed_resource.merge import (
    MergeOptions,
    for_creation,
    merge,
)
from pergola.resource_manager.controllers.managed_resource.order import depends_on, waves
from pergola.resource_manager.controllers.managed_resource.plan import Planned
from pergola.resource_manager.controllers.managed_resource.prune import describe
from pergola.resource_manager.controllers.managed_resource.references import object_key_of
from pergola.resource_manager.target import Target
from pergola.runtime.logging import get_logger

log = get_logger("managedresource")

_AT_ONCE: Final = 8
_CONFLICTS: Final = 4
_IMMUTABLE: Final = frozenset({GroupKind("", "ConfigMap"), GroupKind("", "Secret")})
_PROPAGATIONS: Final = frozenset({"Background", "Foreground", "Orphan"})


@dataclass(slots=True)
class Applied:
    """How an apply went.

    Attributes:
        errors: what failed, each naming its object.
        again_seconds: when a throttled repair may go on; None if nothing was held back.
    """

    errors: list[str] = field(default_factory=list)
    again_seconds: float | None = None
    fatal: bool = False


class ApplyRefused(Exception):
    """An object cannot be applied as it is; the text says why."""


class Applier:
    """Applies planned objects to one target, and remembers what it found equal."""

    def __init__(self, target: Target, fights: FightLimit) -> None:
        self._target = target
        self._fights = fights
        self._settled: dict[str, tuple[bytes, bytes]] = {}
        self._distrusted: set[str] = set()

    def is_settled(self, planned: Planned) -> bool:
        """Whether the live object is known to be as the manifest wants it."""
        settled = self._settled.get(planned.object_key)
        if settled is None or settled[0] != planned.fingerprint:
            return False
        if not self._target.covers(planned.gvk, planned.key):
            return False
        seen = self._target.seen(planned.gvk, planned.key)
        return seen is not None and seen.digest == settled[1]

    def is_expected(self, gvk: GroupVersionKind, key: Key, digest: bytes) -> bool:
        """Whether a live object with this digest is as this process last found or left it."""
        settled = self._settled.get(object_key_of(gvk, key))
        return settled is not None and settled[1] == digest

    def forget(self, object_keys: Sequence[str]) -> None:
        """Drop what is remembered of objects that are not managed any more."""
        for object_key in object_keys:
            self._settled.pop(object_key, None)
            self._distrusted.discard(object_key)

    def distrust(self, object_keys: Sequence[str]) -> None:
        """Have the next run ask the server for the objects, whatever the watch says of them."""
        self.forget(object_keys)
        self._distrusted.update(object_keys)

    async def apply(
        self, objects: Sequence[Planned], options: MergeOptions, *, always: bool
    ) -> Applied:
        """Apply all objects, in order of kind; goes on after an object that failed.

        Args:
            always: send an update even where nothing differs.
        """
        outcome = Applied()
        failed: list[Planned] = []
        limit = asyncio.Semaphore(_AT_ONCE)

        async def one(planned: Planned) -> None:
            async with limit:
                if outcome.fatal:
                    return
                try:
                    await self._apply_one(planned, options, outcome, always=always)
                except (KubeError, ManifestError, ApplyRefused) as error:
                    failed.append(planned)
                    outcome.errors.append(_text(planned, error))
                    # Without an answer, or unknown to the server, the others fail the same way.
                    outcome.fatal |= isinstance(error, Unreachable | Unauthorized)

        for wave in waves(objects):
            ready = [p for p in wave if always or not self.is_settled(p)]
            ready = [p for p in ready if not depends_on(p, failed)]
            async with asyncio.TaskGroup() as group:
                for planned in ready:
                    group.create_task(one(planned))
            if outcome.fatal:
                break
        return outcome

    async def _apply_one(
        self, planned: Planned, options: MergeOptions, outcome: Applied, *, always: bool
    ) -> None:
        await self._target.watch(planned.gvk)
        manifest = planned.manifest()
        if marks.is_truthy(annotations_of(manifest).get(marks.IGNORE)):
            await self._apply_ignored(planned, manifest)
            return
        live = await self._read(planned)
        if live is None:
            live = await self._create(planned, for_creation(manifest, options))
            if live is None:
                return
        await self._update(planned, manifest, live, options, outcome, always=always)

    async def _read(self, planned: Planned) -> JsonObject | None:
        """Return the live object, or None if it does not exist as far as the watch knows."""
        trusted = planned.object_key not in self._distrusted
        if trusted and self._target.covers(planned.gvk, planned.key):
            seen = self._target.seen(planned.gvk, planned.key)
            if seen is None:
                return None
            kept = seen.unpack()
            if kept is not None:
                return kept
        return await self._target.live(planned.gvk, planned.key)

    async def _create(self, planned: Planned, obj: JsonObject) -> JsonObject | None:
        """Create the object; returns None, or the live object if there is one after all.

        The watch shows only labelled objects, and an object that is there can make its creation
        fail in other ways than by its name, e.g. by a quota.
        """
        try:
            created = await self._target.client.create(obj)
        except ApiError as error:
            live = await self._target.live(planned.gvk, planned.key)
            if live is None:
                raise
            log.debug("object exists", object=planned.object_key, error=str(error))
            return live
        self._remember(planned, created)
        log.info("object created", object=planned.object_key)
        return None

    async def _apply_ignored(self, planned: Planned, manifest: JsonObject) -> None:
        live = await self._target.live(planned.gvk, planned.key)
        if live is None:
            try:
                await self._target.client.create(manifest)
            except AlreadyExists:
                return
            log.info("object created", object=planned.object_key, ignored=True)
        elif marks.DESCRIPTION in annotations_of(live):
            body = {"metadata": {"annotations": {marks.DESCRIPTION: None}}}
            await self._target.client.patch(planned.gvk, planned.key, body)

    async def _update(
        self,
        planned: Planned,
        manifest: JsonObject,
        live: JsonObject,
        options: MergeOptions,
        outcome: Applied,
        *,
        always: bool,
    ) -> None:
        for attempt in range(_CONFLICTS):
            merged = merge(manifest, live, previous=planned.previous, options=options)
            if not needs_update(live, merged) and not always:
                self._remember(planned, live)
                return
            if not always and self._is_fight(planned, live, outcome):
                return
            try:
                updated = await self._target.client.update(merged)
            except Conflict:
                if attempt + 1 == _CONFLICTS:
                    raise
                found = await self._target.live(planned.gvk, planned.key)
            except NotFound:
                found = None
            except Invalid as error:
                await self._recreate(planned, merged, live, error)
                found = None
            else:
                self._report(planned, live, updated)
                return
            if found is None:
                await self._create(planned, for_creation(manifest, options))
                return
            live = found

    def _is_fight(self, planned: Planned, live: JsonObject, outcome: Applied) -> bool:
        """Whether this is drift of an object that was repaired too often lately."""
        settled = self._settled.get(planned.object_key)
        if settled is None or settled[0] != planned.fingerprint:
            return False
        delay = self._fights.delay(planned.object_key)
        if delay > 0:
            outcome.again_seconds = min(delay, outcome.again_seconds or delay)
            log.info("repair held back", object=planned.object_key, seconds=round(delay, 1))
            return True
        self._fights.repaired(planned.object_key)
        return False

    async def _recreate(
        self, planned: Planned, merged: JsonObject, live: JsonObject, error: Invalid
    ) -> None:
        """Delete an object whose update the server calls invalid, if that was asked for."""
        annotations = annotations_of(merged)
        wanted = marks.is_truthy(annotations.get(marks.DELETE_ON_INVALID_UPDATE))
        immutable = planned.gvk.group_kind in _IMMUTABLE and "immutable" in str(error)
        if not wanted and not immutable:
            raise error
        propagation = annotations.get(marks.DELETION_PROPAGATION_ON_INVALID_UPDATE, "")
        if propagation and propagation not in _PROPAGATIONS:
            raise ApplyRefused(
                f"annotation {marks.DELETION_PROPAGATION_ON_INVALID_UPDATE} is "
                f"{propagation!r}; it must be Background, Foreground or Orphan"
            )
        gone = await self._target.client.delete(
            planned.gvk, planned.key, uid=uid_of(live), propagation=propagation
        )
        log.info("object deleted to be created anew", object=planned.object_key, error=str(error))
        if not gone:
            raise ApplyRefused(f"deleted to be created anew, but still there: {error}")

    def _report(self, planned: Planned, live: JsonObject, updated: JsonObject) -> None:
        self._remember(planned, updated)
        if resource_version_of(updated) != resource_version_of(live):
            log.info("object updated", object=planned.object_key)

    def _remember(self, planned: Planned, live: JsonObject) -> None:
        self._distrusted.discard(planned.object_key)
        self._settled[planned.object_key] = (planned.fingerprint, content_digest(live))
        self._target.observe(live)


def _text(planned: Planned, error: Exception) -> str:
    if isinstance(error, Conflict):
        return str(error)
    return f"error during apply of object {describe(planned.reference)}: {error}"
