"""Writing the status of ManagedResources: only differences, never over a concurrent change.

Two controllers write conditions of the same object. Each describes a change rather than a result;
the writer applies it to the newest known state and writes with that state's resourceVersion. A
write that lost a race is repeated on the winner's state.
"""

from collections.abc import Callable
from typing import Final

from pergola.api.objects import JsonObject, Key, map_at, metadata_of, resource_version_of, uid_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.errors import Conflict, NotFound
from pergola.resource_manager.source import Source

Change = Callable[[JsonObject], JsonObject | None]
"""Maps a ManagedResource to its new status, or None if the change no longer applies."""

_ATTEMPTS: Final = 4


class StatusWriter:
    """Writes the status of the source's ManagedResources."""

    def __init__(self, source: Source) -> None:
        self._source = source

    async def write(self, resource: JsonObject, change: Change) -> JsonObject | None:
        """Change the status, if `change` has an effect.

        Args:
            resource: as the caller knows it; a newer known state takes precedence.
            change: must not change its argument.

        Returns:
            The ManagedResource afterwards, or None if it was deleted or recreated, or the change no
            longer applies.

        Raises:
            Conflict: other clients kept writing concurrently.
        """
        key = Key.of(resource)
        newest = self._newest(key, resource)
        for attempt in range(_ATTEMPTS):
            status = change(newest)
            if status is None:
                return None
            if status == map_at(newest, "status"):
                return newest
            try:
                written = await self._source.client.update(
                    _with_status(newest, status), subresource="status"
                )
            except NotFound:
                return None
            except Conflict:
                if attempt + 1 == _ATTEMPTS:
                    raise
                found = await self._read(key)
                if found is None or uid_of(found) != uid_of(resource):
                    return None
                newest = found
            else:
                self._source.observe(written)
                return written
        raise AssertionError("the last attempt returns or raises")

    def _newest(self, key: Key, resource: JsonObject) -> JsonObject:
        seen = self._source.resource(key)
        if seen is None or seen.uid != uid_of(resource):
            return resource
        if seen.version == resource_version_of(resource):
            return resource
        return seen.unpack()

    async def _read(self, key: Key) -> JsonObject | None:
        found = await self._source.client.find(MANAGED_RESOURCE, key)
        if found is not None:
            self._source.observe(found)
        return found


def _with_status(resource: JsonObject, status: JsonObject) -> JsonObject:
    """Return the object to write: a replacement costs the API server a fifth less than a patch.

    The API server takes only the status from it, and keeps the managed fields if they are absent.
    """
    metadata = {k: v for k, v in metadata_of(resource).items() if k != "managedFields"}
    return {**resource, "metadata": metadata, "status": status}
