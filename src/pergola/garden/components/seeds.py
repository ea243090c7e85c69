"""The facts about the Seeds of the virtual cluster that components use (spec 20 §16.6, §16.8)."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from pergola.api.kinds import SEED
from pergola.api.objects import GroupVersionKind, JsonObject, labels_of, map_at, name_of
from pergola.garden.components.component import Clusters
from pergola.garden.landscape import Landscape
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, UnknownKind
from pergola.runtime.clock import monotonic
from pergola.runtime.retrying import retrying

MANAGED_SEED: Final = GroupVersionKind("seedmanagement.gardener.cloud", "v1alpha1", "ManagedSeed")

_NETWORK: Final = "seed.gardener.cloud/network"
_UNAVAILABLE: Final = 503
_REACHED_SECONDS: Final = 30.0
_AGAIN_SECONDS: Final = 1.0


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
        domains: The ingress domains of reachable Seeds, by name, each once: targets of Prometheus
            must differ, and nothing keeps two Seeds from having the same domain.
        terminal: The first reachable Seed that is managed; empty if there is none.
    """

    domains: tuple[str, ...]
    terminal: str


def used_of(seeds: Iterable[Seed], managed: Iterable[str]) -> Used:
    """Return the facts about these Seeds for components.

    Args:
        managed: The names of the ManagedSeeds.
    """
    reachable = sorted(seed for seed in seeds if seed.is_reachable)
    names = set(managed)
    terminal = next((seed.name for seed in reachable if seed.name in names), "")
    return Used(tuple(dict.fromkeys(seed.domain for seed in reachable if seed.domain)), terminal)


async def learn_seeds(landscape: Landscape, clusters: Clusters) -> Landscape:
    """Learn the facts about the Seeds.

    Raises:
        NotConnected: There is no kubeconfig of the virtual cluster with a token yet.
        KubeError: A cluster refused, or did not answer.
    """
    virtual = await clusters.virtual_client()
    seeds = [Seed.of(each) for each in await _listed(virtual, SEED)]
    used = used_of(seeds, map(name_of, await _listed(virtual, MANAGED_SEED)))
    return replace(landscape, seed_domains=used.domains, terminal_seed=used.terminal)


async def _listed(client: Client, gvk: GroupVersionKind) -> list[JsonObject]:
    """Return the objects of a kind; none while Gardener's API server is not registered yet.

    After a rollout of Gardener's API server, the virtual cluster's may need a moment to reach it.
    """
    end = monotonic() + _REACHED_SECONDS
    with retrying() as failed:
        while True:
            try:
                return await client.list(gvk)
            except UnknownKind:
                return []
            except ApiError as error:
                if error.code != _UNAVAILABLE or monotonic() > end:
                    raise
                failed(error)
            await asyncio.sleep(_AGAIN_SECONDS)
