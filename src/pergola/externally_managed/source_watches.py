"""Watches on exactly the ConfigMaps and Secrets that describe networks.

Each object has its own watch, by name, so that the manager needs no permission to list all Secrets
of a cluster: a Role in the namespaces with these Secrets is enough.
"""

import asyncio
from collections.abc import Callable

from pergola.api.objects import GroupVersionKind, JsonObject, Key, resource_version_of
from pergola.externally_managed.predicate import manager_of
from pergola.externally_managed.sources import source_object
from pergola.kube.client import Client
from pergola.kube.selectors import select_name
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.index import Index
from pergola.runtime.task_group import TaskGroup

Reference = tuple[GroupVersionKind, Key]


class SourceWatches:
    """Notifications about changed descriptions of networks.

    Args:
        objects: the InfraClusters.
        name: the external manager whose InfraClusters count.
        notify: called with the key of each InfraCluster whose source changed.
    """

    def __init__(
        self, client: Client, objects: Cache[JsonObject], name: str, notify: Callable[[Key], None]
    ) -> None:
        self._client = client
        self._name = name
        self._named = Index(objects, lambda _, obj: filter(None, [self._source(obj)]))
        self._notify = notify
        self._watches: dict[Reference, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        objects.subscribe(self._on_object)

    async def run(self) -> None:
        """Watch the referenced objects until cancelled."""
        async with TaskGroup() as group:
            while True:
                named = set(self._named.values())
                for reference in named - self._watches.keys():
                    watch = self._watch(*reference)
                    self._watches[reference] = group.create_task(watch, name=f"watch {reference}")
                for reference in self._watches.keys() - named:
                    self._watches.pop(reference).cancel()
                await self._changed.wait()
                self._changed.clear()

    def _on_object(self, change: Change[JsonObject]) -> None:
        before, after = (self._source(obj) if obj else None for obj in (change.old, change.new))
        if before != after:
            self._changed.set()

    def _source(self, obj: JsonObject) -> Reference | None:
        return source_object(obj) if manager_of(obj) == self._name else None

    async def _watch(self, gvk: GroupVersionKind, key: Key) -> None:
        versions = Cache(
            self._client,
            gvk,
            resource_version_of,
            namespace=key.namespace,
            fields=select_name(key.name),
            metadata_only=True,
        )

        def notify() -> None:
            for infra_cluster in list(self._named.keys((gvk, key))):
                self._notify(infra_cluster)

        versions.subscribe(lambda _: notify())
        async with TaskGroup() as group:
            group.create_task(versions.run())
            await versions.synced()
            if versions.get(key) is None:  # it may have been deleted after it was read
                notify()
