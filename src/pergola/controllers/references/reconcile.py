"""Decisions about the finalizers of referenced objects and their referrers (spec 21 §4.4)."""

from typing import Final

from pergola.api.marks import REFERENCE_PROTECTION
from pergola.api.objects import GroupVersionKind, JsonObject, Key, finalizers_of
from pergola.controllers.references.fields import KINDS, Identity, Reference
from pergola.controllers.references.named import NamedObjects
from pergola.controllers.references.referrers import AllReferrers, Referrer, seen
from pergola.kube.client import Client
from pergola.kube.finalizers import add_finalizer, remove_finalizer
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.events import Recorder, Regarding
from pergola.runtime.logging import get_logger

log = get_logger("references")

MISSING: Final = "ReferenceMissing"
"""The reason of the Event about a reference to a missing object."""


class Protection:
    """Adds the finalizer to objects in use, and removes it after the last referrer is gone."""

    def __init__(
        self, client: Client, referrers: AllReferrers, named: NamedObjects, events: Recorder
    ) -> None:
        self._client = client
        self._referrers = referrers
        self._named = named
        self._events = events

    async def reconcile_named(self, identity: Identity) -> Outcome:
        """Protect or release one Secret or ConfigMap.

        Before a release, the referrers are listed by requests: a lagging watch may not know the
        newest one yet.

        Raises:
            Conflict: It changed in the meantime.
            KubeError: The API server refused, or did not answer.
        """
        await self._synced()
        if not self._referrers.hold(identity) and not self._named.is_protected(identity):
            return DONE
        kind, key = identity
        obj = await self._client.find(KINDS[kind], key, metadata_only=True)
        if obj is None:
            return DONE
        if self._referrers.hold(identity):
            await self._protect(KINDS[kind], obj)
        elif not await self._referrers.hold_now(self._client, identity):
            await self._release(KINDS[kind], obj)
        return DONE

    async def reconcile_referrer(self, referrer: Referrer, key: Key) -> Outcome:
        """Protect or release a referrer; report references to missing objects.

        It is released after all objects that it held: without its finalizer it may disappear.

        Raises:
            Conflict: It changed meanwhile.
            KubeError: It changed in the meantime.
        """
        await self._synced()
        obj = await self._client.find(referrer.gvk, key)
        if obj is None:
            return DONE
        it = seen(referrer, obj)
        missing = [each for each in it.holds if not self._named.exists(each.identity)]
        self._report(obj, missing)
        if len(missing) < len(it.holds):
            await self._protect(referrer.gvk, obj)
        elif it.is_released and not self._has_unreleased():
            await self._release(referrer.gvk, obj)
        return DONE

    async def _protect(self, gvk: GroupVersionKind, obj: JsonObject) -> None:
        after = await add_finalizer(self._client, gvk, obj, REFERENCE_PROTECTION)
        if after is not None and finalizers_of(after) != finalizers_of(obj):
            log.info("object protected", kind=gvk.kind, object=str(Key.of(obj)))

    async def _release(self, gvk: GroupVersionKind, obj: JsonObject) -> None:
        if await remove_finalizer(self._client, gvk, obj, REFERENCE_PROTECTION):
            log.info("object released", kind=gvk.kind, object=str(Key.of(obj)))

    def _has_unreleased(self) -> bool:
        return any(not self._referrers.hold(each) for each in self._named.protected())

    def _report(self, obj: JsonObject, missing: list[Reference]) -> None:
        for each in missing:
            self._events.warning(
                Regarding.of(obj),
                MISSING,
                f"{each.kind} {each.key}, which {each.field} names, does not exist: create it, or "
                "correct the field",
            )

    async def _synced(self) -> None:
        """Wait until all existing referrers and referenced objects are known."""
        await self._referrers.synced()
        await self._named.synced()
