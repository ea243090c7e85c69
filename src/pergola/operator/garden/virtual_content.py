"""The Seeds in the virtual cluster, which some components name (spec 20 §16.6, §16.8)."""

from collections.abc import Iterable
from typing import Final

from pergola.api.kinds import INGRESS
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    labels_of,
    map_at,
    maps_at,
    name_of,
)
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind
from pergola.operator.garden.landscape import NAMESPACE
from pergola.operator.garden.run import Run

SEED: Final = GroupVersionKind("core.gardener.cloud", "v1beta1", "Seed")
MANAGED_SEED: Final = GroupVersionKind("seedmanagement.gardener.cloud", "v1alpha1", "ManagedSeed")

_NETWORK: Final = "seed.gardener.cloud/network"
_AGGREGATE: Final = Key(NAMESPACE, "prometheus-aggregate")
_PREFIX: Final = "p-seed."


async def connect(run: Run) -> None:
    """Connect to the virtual cluster.

    Raises:
        NotConnected: There is no kubeconfig with a token yet.
        KubeError: A cluster refused, or did not answer.
    """
    virtual = await run.virtual.client()
    await virtual.get_raw("/version")


async def observe_seeds(run: Run) -> None:
    """Add to the landscape what depends on the Seeds; raises as `connect` does."""
    virtual = await run.virtual.client()
    seeds = _reachable(await _listed(virtual, SEED))
    managed = {name_of(each) for each in await _listed(virtual, MANAGED_SEED)}
    names = sorted(name_of(seed) for seed in seeds)
    run.update(
        seed_domains=tuple(filter(None, map(_domain, seeds))),
        own_seed_domain=await _own_domain(run.client),
        terminal_seed=next((name for name in names if name in managed), ""),
    )


async def _listed(client: Client, gvk: GroupVersionKind) -> list[JsonObject]:
    """Return the objects of a kind; none while Gardener's API server is not registered yet."""
    try:
        return await client.list(gvk)
    except UnknownKind:
        return []


def _reachable(seeds: Iterable[JsonObject]) -> list[JsonObject]:
    found = [seed for seed in seeds if labels_of(seed).get(_NETWORK) != "private"]
    return sorted(found, key=name_of)


def _domain(seed: JsonObject) -> str:
    return str(map_at(seed, "spec", "ingress").get("domain") or "")


async def _own_domain(client: Client) -> str:
    """Return the ingress domain of the Seed that is the runtime cluster; empty if none."""
    ingress = await client.find(INGRESS, _AGGREGATE)
    rules = maps_at(ingress or {}, "spec", "rules")
    host = str(rules[0].get("host") or "") if rules else ""
    return host.removeprefix(_PREFIX) if host.startswith(_PREFIX) else ""
