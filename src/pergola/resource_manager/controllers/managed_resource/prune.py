"""Deletion of objects that left the manifests, and release of those of others (spec 10 §4.6, §4.7).

An object that another ManagedResource has as well stays (see `others`), and every delete request
contains the uid of the object that was read.
"""

import asyncio
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pergola.api import marks
from pergola.api.durations import DurationError, parse_duration
from pergola.api.kinds import CRD, PVC
from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    finalizers_of,
    labels_of,
    map_at,
    maps_at,
    name_of,
    namespace_of,
    uid_of,
)
from pergola.kube.definitions import set_up_storage
from pergola.kube.errors import (
    Conflict,
    InvalidKey,
    KubeError,
    NotFound,
    UnknownKind,
    is_outage,
)
from pergola.kube.selectors import format_selector, is_empty
from pergola.resource_manager.controllers.managed_resource.conditions import errors_message
from pergola.resource_manager.controllers.managed_resource.errors import error_text
from pergola.resource_manager.controllers.managed_resource.others import Spare
from pergola.resource_manager.controllers.managed_resource.references import (
    object_key,
    reference_key,
    reference_kind,
)
from pergola.resource_manager.controllers.managed_resource.warnings import service_warnings
from pergola.resource_manager.origin import Origin, parse_origin
from pergola.resource_manager.target import Target
from pergola.resource_manager.target.autoscalers import HPA
from pergola.runtime.clock import Clock
from pergola.runtime.logging import get_logger
from pergola.runtime.task_group import gathered

log = get_logger("managedresource")

SERVICE: Final = GroupKind("", "Service")
NAMESPACE: Final = GroupKind("", "Namespace")
_COLLECTED: Final = frozenset({GroupKind("", "ConfigMap"), GroupKind("", "Secret")})
_FOREGROUND_GROUPS: Final = frozenset({"apps", "extensions", "batch"})
_STATEFUL_SETS: Final = frozenset(
    {GroupKind("apps", "StatefulSet"), GroupKind("extensions", "StatefulSet")}
)
_AT_ONCE: Final = 16


class GracePeriodError(ValueError):
    """An annotation with an unreadable grace period; the text names it."""


@dataclass(frozen=True, slots=True)
class Pending:
    """An object that still exists.

    Attributes:
        reason: why it exists.
        is_outage: whether only its API group does not answer, so that nothing is known about it.
    """

    reference: JsonObject
    reason: str
    is_outage: bool = False


@dataclass(frozen=True, slots=True)
class Pruner:
    """The deletion and release of objects of one target.

    Attributes:
        collects_garbage: whether the garbage collector is enabled and takes care of labelled
            ConfigMaps and Secrets.
    """

    target: Target
    clock: Clock
    collects_garbage: bool

    async def delete(
        self,
        references: Collection[JsonObject],
        owner: Origin,
        *,
        claims: bool,
        spare: Spare,
    ) -> list[Pending]:
        """Delete the objects, all at once and in no order; return those that still exist.

        Args:
            references: as in the status of a ManagedResource.
            owner: the ManagedResource that the objects come from.
            claims: also delete the volume claims of StatefulSets.
            spare: which objects stay because of other ManagedResources (spec 10 B19).
        """
        limit = asyncio.Semaphore(_AT_ONCE)

        async def one(reference: JsonObject) -> Pending | None:
            async with limit:
                return await self._delete(reference, owner, claims=claims, spare=spare)

        outcomes = await gathered(one(reference) for reference in references)
        return [pending for pending in outcomes if pending is not None]

    async def release(self, references: Collection[JsonObject], owner: Origin) -> list[str]:
        """Remove our origin and description from the objects; return the errors."""
        outcomes = await gathered(self._release(r, owner) for r in references)
        return [problem for problem in outcomes if problem]

    async def _delete(
        self, reference: JsonObject, owner: Origin, *, claims: bool, spare: Spare
    ) -> Pending | None:
        gvk, key = reference_kind(reference), reference_key(reference)
        try:
            live = await self.target.client.get(gvk, key)
            kept = _why_kept_itself(live, collects_garbage=self.collects_garbage)
            if not kept and (other := await spare(object_key(reference), live)):
                kept = _belongs_to(other)
            if kept:
                log.info("object kept", object=describe(reference), reason=kept)
                return None
            if claims and gvk.group_kind in _STATEFUL_SETS:
                await self._delete_claims(live)
            gone = await self._ask(gvk, key, live)
            if not gone:
                gone = await self._finalize(gvk, key, live)
        except (InvalidKey, NotFound, UnknownKind):
            return None
        except (KubeError, GracePeriodError) as error:
            text = error_text(error, gvk)
            return Pending(reference, text, is_outage=is_outage(error))
        if gone:
            log.info("object deleted", object=describe(reference), managed_resource=str(owner))
            if gvk.group_kind == HPA.group_kind:
                self.target.autoscalers.deleted(key)
            return None
        return Pending(reference, await self._why(gvk, key))

    async def _ask(self, gvk: GroupVersionKind, key: Key, live: JsonObject) -> bool:
        if deletion_timestamp_of(live) is not None:
            return False  # deletion was already requested; another request would change nothing
        if gvk.group_kind == CRD.group_kind:
            await set_up_storage(self.target.client, live)
        propagation = "Foreground" if gvk.group in _FOREGROUND_GROUPS else ""
        try:
            return await self.target.client.delete(
                gvk, key, uid=uid_of(live), propagation=propagation
            )
        except Conflict:
            return False  # recreated after it was read: the next run decides again

    async def _delete_claims(self, stateful_set: JsonObject) -> None:
        """Delete the claims that the StatefulSet made: by selector, and by name (spec 10 B4)."""
        selector = map_at(stateful_set, "spec", "selector")
        templates = [name_of(t) for t in maps_at(stateful_set, "spec", "volumeClaimTemplates")]
        if not templates or is_empty(selector):
            return
        own = re.compile(
            f"(?:{'|'.join(map(re.escape, templates))})-{re.escape(name_of(stateful_set))}-[0-9]+"
        )
        namespace = namespace_of(stateful_set)
        claims = await self.target.client.list(
            PVC, namespace, labels=format_selector(selector), metadata_only=True
        )
        for claim in claims:
            if own.fullmatch(name_of(claim)) and deletion_timestamp_of(claim) is None:
                try:
                    await self.target.client.delete(PVC, Key.of(claim), uid=uid_of(claim))
                except NotFound:
                    continue

    async def _finalize(self, gvk: GroupVersionKind, key: Key, live: JsonObject) -> bool:
        """Remove the finalizers if the object requests that and has waited long enough."""
        if not self._is_overdue(live):
            return False
        client = self.target.client
        if gvk.group_kind == NAMESPACE:
            # Finalizing a Namespace that still has content orphans that content (spec 10 B3).
            if _has_content(live):
                return False
            emptied = {**live, "spec": {**map_at(live, "spec"), "finalizers": []}}
            await client.update(emptied, subresource="finalize")
        if finalizers_of(live):
            body = {"metadata": {"uid": uid_of(live), "finalizers": None}}
            await client.patch(gvk, key, body)
        log.info("object finalized", object=f"{gvk}/{key}")
        return await self.target.live(gvk, key) is None

    def _is_overdue(self, live: JsonObject) -> bool:
        text = annotations_of(live).get(marks.FINALIZE_DELETION_AFTER)
        if text is None:
            return False
        try:
            grace = parse_duration(text)
        except DurationError as error:
            raise GracePeriodError(
                f"annotation {marks.FINALIZE_DELETION_AFTER}: {error}"
            ) from error
        since = deletion_timestamp_of(live)
        if grace.total_seconds() <= 0 or since is None:
            return False
        return self.clock.now() - datetime.fromisoformat(since) >= grace

    async def _why(self, gvk: GroupVersionKind, key: Key) -> str:
        """Return why an object still exists although its deletion was requested."""
        try:
            live = await self.target.live(gvk, key)
        except KubeError as error:
            return str(error)
        if live is None:
            return "deletion is not confirmed yet"
        text = "still exists"
        if finalizers := finalizers_of(live):
            text = f"waits for its finalizers {', '.join(finalizers)}"
        if since := deletion_timestamp_of(live):
            text += f" since {since}"
        if gvk.group_kind == SERVICE:
            text += await service_warnings(self.target.client, live, self.clock)
        return text

    async def _release(self, reference: JsonObject, owner: Origin) -> str | None:
        gvk, key = reference_kind(reference), reference_key(reference)
        try:
            live = await self.target.live(gvk, key)
            if live is None or _origin(live) != str(owner):
                return None
            body = {"metadata": {"annotations": {marks.ORIGIN: None, marks.DESCRIPTION: None}}}
            self.target.observe(await self.target.client.patch(gvk, key, body))
        except (InvalidKey, NotFound, UnknownKind):
            return None
        except KubeError as error:
            return f"cannot release {describe(reference)}: {error}"
        return None


def why_kept(live: JsonObject, owner: Origin, *, collects_garbage: bool) -> str:
    """Return why an object stays after its ManagedResource drops it; empty if it does not.

    This is what the object says itself; the ManagedResource in its origin may have left it since.

    Args:
        collects_garbage: as for `Pruner`.
    """
    if kept := _why_kept_itself(live, collects_garbage=collects_garbage):
        return kept
    origin = parse_origin(_origin(live))
    return _belongs_to(origin) if origin is not None and origin != owner else ""


def _why_kept_itself(live: JsonObject, *, collects_garbage: bool) -> str:
    if marks.is_truthy(annotations_of(live).get(marks.KEEP_OBJECT)):
        return f"annotation {marks.KEEP_OBJECT} is set"
    kind = GroupVersionKind.of(live).group_kind
    labelled = marks.is_truthy(labels_of(live).get(marks.GARBAGE_COLLECTABLE))
    if collects_garbage and kind in _COLLECTED and labelled:
        return "the garbage collector deletes it once no object refers to it"
    return ""


def _belongs_to(origin: Origin) -> str:
    return f"it belongs to ManagedResource {origin}"


def describe(reference: JsonObject) -> str:
    """Format an object for messages: `"<apiVersion>/<kind>/<namespace>/<name>"`."""
    parts = (
        reference.get("apiVersion") or "",
        reference.get("kind") or "",
        reference.get("namespace") or "default",
        reference.get("name") or "",
    )
    return f'"{"/".join(parts)}"'


def pending_message(pending: Sequence[Pending]) -> str:
    """Return a message about all objects that still exist, with their number (spec 10 §4.6)."""
    entries = sorted(f"{describe(p.reference)}: {p.reason}" for p in pending)
    if len(entries) == 1:
        return f"Could not clean all old resources: 1 error occurred: {entries[0]}"
    return f"Could not clean all old resources: {errors_message(entries)}"


def _origin(obj: JsonObject) -> str:
    return annotations_of(obj).get(marks.ORIGIN, "")


def _has_content(namespace: JsonObject) -> bool:
    """Return whether the namespace controller reports remaining content, or nothing yet."""
    conditions = {
        c.get("type"): c.get("status") for c in maps_at(namespace, "status", "conditions")
    }
    if "NamespaceContentRemaining" not in conditions:
        return True
    return conditions["NamespaceContentRemaining"] == "True"
