"""The Seeds of the virtual cluster: their facts that components use, and a watch for changes."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from pergola.api.kinds import SEED
from pergola.api.objects import GroupVersionKind, JsonObject, labels_of, map_at, name_of
from pergola.garden.landscape import Landscape
from pergola.kube.client import Client
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.runtime.caching.cache import Cache
from pergola.runtime.controlling.watches import Events
from pergola.runtime.task_group import TaskGroup

MANAGED_SEED: Final = GroupVersionKind("seedmanagement.gardener.cloud", "v1alpha1", "ManagedSeed")

_NETWORK: Final = "seed.gardener.cloud/network"


class Seed(NamedTuple):
    """The facts about a Seed that components depend on.

    Attributes:
        domain: The domain of its ingresses; empty if it has none.
        is_reachable: Whether the garden can reach it.
    """

    name: str
    domain: str
    is_reachable: bool

    @classmethod
    def of(cls, seed: JsonObject) -> "Seed":
        """Return these facts about an object."""
        domain = str(map_at(seed, "spec", "ingress").get("domain") or "")
        return cls(name_of(seed), domain, labels_of(seed).get(_NETWORK) != "private")


class Used(NamedTuple):
    """The facts about all Seeds that components use.

    Attributes:
        domains: The ingress domains of reachable Seeds, by name.
        terminal: The first reachable Seed that is managed; empty if there is none.
    """

    domains: tuple[str, ...]
    terminal: str

    @classmethod
    def by(cls, landscape: Landscape) -> "Used":
        """Return the facts that the components of a landscape use."""
        return cls(landscape.seed_domains, landscape.terminal_seed)


def used_of(seeds: Iterable[Seed], managed: Iterable[str]) -> Used:
    """Return the facts about these Seeds for components.

    Args:
        managed: The names of the ManagedSeeds.
    """
    reachable = sorted(seed for seed in seeds if seed.is_reachable)
    names = set(managed)
    terminal = next((seed.name for seed in reachable if seed.name in names), "")
    return Used(tuple(seed.domain for seed in reachable if seed.domain), terminal)


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
        async with TaskGroup() as group:
            for cache in caches:
                cache.subscribe(lambda _: self._compare())
                group.create_task(cache.run())
            for cache in caches:
                await cache.synced()
            self._compare()

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
