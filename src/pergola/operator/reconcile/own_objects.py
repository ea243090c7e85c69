"""The objects that the last reconciliation of the Garden left, and a trigger if one vanishes.

During a reconciliation nothing is expected, so the operator's own writes trigger nothing.
"""

import asyncio
from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

from pergola.api.objects import GroupKind, Identity, JsonObject, Key, generation_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api.kinds import BACKUP_BUCKET, BACKUP_ENTRY, DNS_RECORD, EXTENSION
from pergola.garden.landscape import NAMESPACE
from pergola.kube.client import Client
from pergola.operator.reconcile.extension_resources.inputs import is_ours
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.packed import Packed
from pergola.runtime.controlling.watches import Events
from pergola.runtime.logging import get_logger
from pergola.runtime.task_group import TaskGroup

log = get_logger("garden")

_EXTENSION_KINDS: Final = (
    (BACKUP_BUCKET.gvk, None),
    (BACKUP_ENTRY.gvk, None),
    (DNS_RECORD.gvk, NAMESPACE),
    (EXTENSION.gvk, NAMESPACE),
)

_Named = tuple[GroupKind, Key]


class OwnObjects:
    """A watch of these objects.

    Args:
        client: Of the runtime cluster; watches the garden's extension resources.
        copies: Caches of other objects; kinds without one are not watched.

    Attributes:
        caches: Of the garden's extension resources.
        vanished: Its event: an object is gone, or a ManagedResource was edited.
    """

    def __init__(self, client: Client, copies: Collection[Cache[Packed]]) -> None:
        self.vanished: Events[None] = Events()
        self._copies = copies
        self.caches = [
            Cache(client, gvk, is_ours, namespace=namespace) for gvk, namespace in _EXTENSION_KINDS
        ]
        self._expected: Mapping[_Named, int] = {}
        self._missing: frozenset[_Named] = frozenset()
        self._is_expecting = False
        self._begun = asyncio.Event()
        for cache in copies:
            cache.subscribe(partial(self._observe, cache))
        for each in self.caches:
            each.subscribe(partial(self._observe_extension, each))

    def begin(self) -> None:
        """Expect nothing: a reconciliation begins."""
        self._expected, self._is_expecting = {}, False

    def expect(self, identities: Collection[Identity]) -> None:
        """Expect these objects from now on; one that is missing already is reported, once."""
        self._begun.set()
        watched = self._watched(identities)
        self._expected = {
            named: _generation(named, stored)
            for named, stored in watched.items()
            if stored is not None
        }
        self._is_expecting = True
        before, self._missing = self._missing, frozenset(watched.keys() - self._expected.keys())
        # Another reconciliation does not help against a writer that keeps deleting an object.
        if self._missing - before:
            self._report(min(self._missing - before, key=str))

    def _watched(self, identities: Collection[Identity]) -> dict[_Named, Packed | None]:
        """Return the objects of kinds and namespaces with a copy; None for a missing one."""
        live = [each for each in self._copies if each.served is True and each.is_synced]
        places = {(each.gvk.group_kind, each.namespace): each for each in live}
        found: dict[_Named, Packed | None] = {}
        for gvk, key in identities:
            kind = gvk.group_kind
            cache = places.get((kind, key.namespace)) or places.get((kind, None))
            if cache is not None:
                found[kind, key] = cache.get(key)
        return found

    async def run(self) -> None:
        """Watch extension resources until cancelled, from the first success on."""
        await self._begun.wait()  # their kinds are served now
        async with TaskGroup() as group:
            for cache in self.caches:
                group.create_task(cache.run())

    def _observe(self, cache: Cache[Packed], change: Change[Packed]) -> None:
        named = (cache.gvk.group_kind, change.key)
        expected = self._expected.get(named)
        if expected is None:
            return
        if change.new is None or _generation(named, change.new) != expected:
            self._report(named)

    def _observe_extension(self, cache: Cache[bool], change: Change[bool]) -> None:
        if self._is_expecting and change.old and change.new is None:
            self._report((cache.gvk.group_kind, change.key))

    def _report(self, named: _Named) -> None:
        kind, key = named
        log.info("own object changed by others", kind=kind.kind, object=str(key))
        self.begin()
        self.vanished.notify(None)


def _generation(named: _Named, stored: Packed) -> int:
    """Return the generation of a ManagedResource, which only the operator edits; 0 for others."""
    kind, _ = named
    if kind != MANAGED_RESOURCE.group_kind:
        return 0
    obj: JsonObject = stored.unpack()
    return generation_of(obj)
