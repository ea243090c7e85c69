"""Taking over an InfraCluster from its provider permanently (spec 50 §6)."""

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
from pergola.externally_managed.inspection import Seen, errors, findings, observe
from pergola.externally_managed.kinds import Managed
from pergola.externally_managed.predicate import manager_of
from pergola.externally_managed.sources import Source
from pergola.kube.client import Client
from pergola.kube.selectors import select_name
from pergola.kube.watch import watch

_FRIENDS: Final = ("pergola", "kubectl")


class AdoptionRefused(Exception):
    """The InfraCluster cannot be adopted in its current state; the text says what to do."""


class Writers(NamedTuple):
    """The writers that changed the content of an InfraCluster after its adoption.

    Attributes:
        early: those that may only have finished work begun before the annotation was set.
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
        """Check whether the object may be adopted, without writing anything.

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
            raise AdoptionRefused(f"{of} is already managed by {self._manager}")
        if present is not None and not take_over:
            raise AdoptionRefused(
                f'{of} is already managed by "{present}"; add --take-over to take it over'
            )
        if deletion_timestamp_of(obj) is not None:
            raise AdoptionRefused(f"{of} is being deleted")
        source = _Assumed(self._source, self._reference) if self._reference else None
        seen = await observe(self._client, self._managed, crd, key, source)
        if seen.cluster is None:
            named = f"Cluster {seen.cluster_key}" if seen.cluster_key else "a Cluster for it"
            raise AdoptionRefused(f"{of}: {named} does not exist; create it first")
        problems = errors(findings(seen))
        if problems and not force:
            raise AdoptionRefused(
                f"{of} is not complete: {'; '.join(problems)}; add --force to adopt it anyway"
            )
        return seen

    def consequences(self, seen: Seen) -> Iterator[str]:
        """Yield the consequences, one sentence each."""
        yield "its provider stops reconciling it, even when it is deleted"
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
        """Watch for content changes by anyone except Pergola and users of kubectl.

        Core writes only labels and owner references, which are not content.

        Args:
            settle: the seconds within which a provider may finish a running reconciliation.
            seconds: the total watch time.
        """
        early, adopted = await self._writers(adopted, settle)
        late, _ = await self._writers(adopted, seconds - settle)
        return Writers(sorted(early - late), sorted(late))

    async def _writers(self, before: JsonObject, seconds: float) -> tuple[set[str], JsonObject]:
        """Return the writers within some seconds, and the resulting object."""
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
    """A source for an object that does not reference one yet."""

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
