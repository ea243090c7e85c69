"""A watch of the Seeds for changes that components have to follow."""

from typing import NamedTuple

from pergola.api.kinds import SEED
from pergola.api.objects import name_of
from pergola.garden.components.seeds import MANAGED_SEED, Seed, Used, used_of
from pergola.kube.client import Client
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.runtime.caching.cache import Cache
from pergola.runtime.controlling.watches import Events
from pergola.runtime.task_group import TaskGroup


class SeedWatch:
    """A watch of the Seeds that reports when components should use other facts.

    Attributes:
        changed: Its event.
    """

    def __init__(self, virtual: VirtualCluster) -> None:
        self.changed: Events[None] = Events()
        self._virtual = virtual
        self._used: Used | None = None
        self._caches: _Caches | None = None

    def use(self, used: Used) -> None:
        """Record the facts that components use from now on."""
        self._used = used
        self._compare()

    async def run(self) -> None:
        """Watch until cancelled, while the virtual cluster is reachable."""
        await self._virtual.while_connected(self._watch)

    async def _watch(self, client: Client) -> None:
        self._caches = caches = _Caches.of(client)
        try:
            async with TaskGroup() as group:
                for cache in caches:
                    cache.subscribe(lambda _: self._compare())
                    group.create_task(cache.run())
                for cache in caches:
                    await cache.synced()
                self._compare()
        finally:
            self._caches = None  # they say nothing about another virtual cluster

    def _compare(self) -> None:
        if self._caches is None or not all(cache.is_synced for cache in self._caches):
            return
        if self._used not in (None, self._caches.used()):
            self._used = None  # until the components use something else
            self.changed.notify(None)


class _Caches(NamedTuple):
    """The Seeds and ManagedSeeds of a virtual cluster."""

    seeds: Cache[Seed]
    managed: Cache[str]

    @classmethod
    def of(cls, client: Client) -> "_Caches":
        return cls(
            Cache(client, SEED, Seed.of), Cache(client, MANAGED_SEED, name_of, metadata_only=True)
        )

    def used(self) -> Used:
        return used_of(
            [seed for _, seed in self.seeds.items()], [name for _, name in self.managed.items()]
        )
