"""Taking an InfraCluster over from its provider, for good (spec 50 §6)."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing, suppress
from typing import Final, NamedTuple

from pergola.api.cluster_api import MANAGED_BY, SOURCE
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    finalizers_of,
    maps_at,
    metadata_of,
    resource_version_of,
)
from pergola.externally_managed.description import Network
from pergola.externally_managed.inspection import Seen, errors, findings, look
from pergola.externally_managed.kinds import Managed
from pergola.externally_managed.predicate import manager_of
from pergola.externally_managed.sources import Source
from pergola.kube.client import Client
from pergola.kube.selectors import select_name
from pergola.kube.watch import watch

_FRIENDS: Final = ("pergola", "kubectl")


class AdoptionRefused(Exception):
    """The InfraCluster cannot be adopted in its present state; the text says what to do."""


class Writers(NamedTuple):
    """The writers that changed the content of an InfraCluster after its adoption.

    Attributes:
        early: those that may only have finished work from before the annotation was set.
        late: those that wrote later.
    """

    early: list[str]
    late: list[str]


class Adoption:
    """The handover of one InfraCluster to a new manager.

    Args:
        manager: the new value of the annotation.
        source: reads the network.
        reference: the value of the source annotation; empty if the object itself is complete.
    """

    def __init__(
        self, client: Client, managed: Managed, manager: str, source: Source, *, reference: str
    ) -> None:
        self._client = client
        self._managed = managed
        self._manager = manager
        self._source = source
        self._reference = reference

    async def prepare(
        self, crd: JsonObject, key: Key, *, take_over: bool = False, force: bool = False
    ) -> Seen:
        """Check whether the object may be adopted; only read.

        Args:
            take_over: allow adoption from another external manager.
            force: allow adoption with an incomplete network.

        Raises:
            AdoptionRefused: the object may not be adopted.
        """
        obj = await self._client.get(self._managed.gvk, key)
        of = f"{self._managed.gvk.kind} {key}"
        present = manager_of(obj)
        if present == self._manager:
            raise AdoptionRefused(f"{of} is managed by {self._manager} already")
        if present is not None and not take_over:
            raise AdoptionRefused(
                f'{of} is managed by "{present}" already; add --take-over to take it from there'
            )
        if deletion_timestamp_of(obj) is not None:
            raise AdoptionRefused(f"{of} is being deleted")
        source = _Assumed(self._source, self._reference) if self._reference else None
        seen = await look(self._client, self._managed, crd, key, source)
        if seen.cluster is None:
            named = f"Cluster {seen.cluster_key}" if seen.cluster_key else "a Cluster for it"
            raise AdoptionRefused(f"{of}: {named} does not exist; create it first")
        problems = errors(findings(seen))
        if problems and not force:
            raise AdoptionRefused(
                f"{of} is not complete: {'; '.join(problems)}; add --force to adopt it all the same"
            )
        return seen

    def consequences(self, seen: Seen) -> Iterator[str]:
        """Yield what will change, in sentences."""
        yield "its provider stops reconciling it, also when it is deleted"
        left = [name for name in finalizers_of(seen.obj) if name in self._managed.finalizers]
        if left:
            yield f"finalizer {', '.join(left)} stays and blocks deletion until it is released"
        yield "the network, its tags and everything else in the cloud stay as they are"
        yield f"condition Ready is {self._manager}'s from now on: {self._readiness(seen)}"
        yield f"annotation {MANAGED_BY} cannot be removed again"

    async def patch(self, seen: Seen) -> JsonObject:
        """Set the annotation if the object has not changed since it was read.

        Raises:
            Conflict: the object has changed.
        """
        annotations = {MANAGED_BY: self._manager}
        if self._reference:
            annotations[SOURCE] = self._reference
        metadata = {
            "resourceVersion": resource_version_of(seen.obj),
            "annotations": annotations,
        }
        return await self._client.patch(self._managed.gvk, Key.of(seen.obj), {"metadata": metadata})

    async def writers_after(self, adopted: JsonObject, settle: float, seconds: float) -> Writers:
        """Watch for changes of the content by others than Pergola and people with kubectl.

        Core writes labels and owner references only, which are not content.

        Args:
            settle: seconds within which a provider may finish a running reconciliation.
            seconds: how long to watch in total.
        """
        early, adopted = await self._writers(adopted, settle)
        late, _ = await self._writers(adopted, seconds - settle)
        return Writers(sorted(early - late), sorted(late))

    async def _writers(self, before: JsonObject, seconds: float) -> tuple[set[str], JsonObject]:
        """Return who wrote within some seconds, and the object after them."""
        key = Key.of(before)
        found: set[str] = set()
        events = watch(
            self._client,
            await self._client.resource(self._managed.gvk),
            key.namespace,
            fields=select_name(key.name),
            resource_version=resource_version_of(before),
            timeout_seconds=int(seconds) + 5,
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), aclosing(events):
                async for event in events:
                    if event.type == "MODIFIED":
                        if _content(before) != _content(event.object):
                            found |= _new_writes(before, event.object)
                        before = event.object
        return {name for name in found if not name.startswith(_FRIENDS)}, before

    def _readiness(self, seen: Seen) -> str:
        problems = errors(findings(seen))
        if problems:
            return f"it will be False, because {'; '.join(problems)}"
        if not self._reference:
            return f"it will be False until annotation {SOURCE} names the network"
        return "it turns False whenever the network is incomplete or differs from the spec"


class _Assumed:
    """A source for an object that does not reference it yet."""

    def __init__(self, source: Source, reference: str) -> None:
        self._source = source
        self._reference = reference

    async def describe(self, obj: JsonObject) -> Network:
        annotations = {**annotations_of(obj), SOURCE: self._reference}
        metadata = {**metadata_of(obj), "annotations": annotations}
        return await self._source.describe({**obj, "metadata": metadata})


def _content(obj: JsonObject) -> tuple[object, ...]:
    return obj.get("spec"), obj.get("status"), finalizers_of(obj)


def _new_writes(before: JsonObject, after: JsonObject) -> set[str]:
    known = maps_at(before, "metadata", "managedFields")
    return {
        str(entry.get("manager"))
        for entry in maps_at(after, "metadata", "managedFields")
        if entry not in known
    }
