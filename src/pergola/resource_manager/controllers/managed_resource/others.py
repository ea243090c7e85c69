"""The other ManagedResources that have a say when one of them no longer describes an object.

An object that another one describes is not deleted: that one takes it over. What a ManagedResource
describes is known once it has run; before that, after a start, its status tells.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from pergola.api import marks
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    finalizers_of,
    maps_at,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.errors import KubeError, NotFound
from pergola.resource_manager.controllers.managed_resource.references import object_key
from pergola.resource_manager.origin import Origin, parse_origin
from pergola.resource_manager.source import Source
from pergola.resource_manager.target.describers import Describers

Spare: TypeAlias = Callable[[str, JsonObject], Awaitable[Origin | None]]
"""Returns the ManagedResource to which an object, by its key and as it is live, belongs as well."""


class Others:
    """The ManagedResources of a source beside the one that is reconciled."""

    def __init__(self, source: Source, describers: Describers) -> None:
        self._source = source
        self._describers = describers

    def sparing(self, owner: Origin) -> Spare:
        """Return the function that decides which objects a ManagedResource must not delete."""
        listed = self._listed(owner)

        async def spare(key: str, live: JsonObject) -> Origin | None:
            describing = [each for each in self._describers.of(key) if each != owner.key]
            describing += listed.get(key, ())
            if describing:
                return owner.beside(describing[0])
            origin = parse_origin(annotations_of(live).get(marks.ORIGIN, ""))
            if origin is None or origin == owner:
                return None
            if origin.cluster_id != owner.cluster_id or await self._has(origin.key, key):
                return origin
            return None

        return spare

    def _listed(self, owner: Origin) -> dict[str, list[Key]]:
        """Return the objects in the statuses of other ManagedResources that have not run yet."""
        mine, found = self._source.responsibility, dict[str, list[Key]]()
        for key, seen in self._source.resources.items():
            has_run = key == owner.key or self._describers.knows(key)
            if has_run or seen.deleting or not mine.is_responsible(seen.resource_class):
                continue
            for reference in maps_at(seen.unpack(), "status", "resources"):
                found.setdefault(object_key(reference), []).append(key)
        return found

    async def _has(self, resource: Key, key: str) -> bool:
        """Return whether the ManagedResource in an origin may still have the object."""
        if self._describers.knows(resource):
            return key in self._describers.described(resource)
        seen = self._source.resource(resource)
        if seen is not None and not seen.deleting:
            return True
        if not self._source.resources.covers(resource.namespace):
            return True
        try:  # a shard watches only its own, and the watch may be late
            found = await self._source.client.get(MANAGED_RESOURCE, resource, metadata_only=True)
        except NotFound:
            return False
        except KubeError:
            return True
        return not (deletion_timestamp_of(found) and _is_done(finalizers_of(found)))


def _is_done(finalizers: Iterable[str]) -> bool:
    """Return whether no instance works on a ManagedResource that is being deleted."""
    return not any(each.startswith(marks.FINALIZER) for each in finalizers)
