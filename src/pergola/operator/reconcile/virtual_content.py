"""The Seeds in the virtual cluster, which some components reference (spec 20 §16.6, §16.8)."""

import asyncio
from typing import Final

from pergola.api.kinds import INGRESS, SEED
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    maps_at,
    name_of,
)
from pergola.garden.landscape import NAMESPACE
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, UnknownKind
from pergola.operator.run.run import Run
from pergola.operator.seeds import MANAGED_SEED, Seed, used_of
from pergola.runtime.clock import monotonic
from pergola.runtime.retrying import retrying

_AGGREGATE: Final = Key(NAMESPACE, "prometheus-aggregate")
_PREFIX: Final = "p-seed."
_UNAVAILABLE: Final = 503
_REACHED_SECONDS: Final = 30.0
_AGAIN_SECONDS: Final = 1.0


async def connect(run: Run) -> None:
    """Connect to the virtual cluster.

    Raises:
        NotConnected: There is no kubeconfig with a token yet.
        KubeError: A cluster refused, or did not answer.
    """
    virtual = await run.virtual.client()
    await virtual.get_raw("/version")


async def observe_seeds(run: Run) -> None:
    """Add the facts about Seeds to the landscape; raises as `connect` does."""
    virtual = await run.virtual.client()
    seeds = [Seed.of(each) for each in await _listed(virtual, SEED)]
    used = used_of(seeds, map(name_of, await _listed(virtual, MANAGED_SEED)))
    run.update(
        seed_domains=used.domains,
        own_seed_domain=await _own_domain(run.client),
        terminal_seed=used.terminal,
    )


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


async def _own_domain(client: Client) -> str:
    """Return the ingress domain of the Seed that is the runtime cluster; empty if none."""
    ingress = await client.find(INGRESS, _AGGREGATE)
    rules = maps_at(ingress or {}, "spec", "rules")
    host = str(rules[0].get("host") or "") if rules else ""
    return host.removeprefix(_PREFIX) if host.startswith(_PREFIX) else ""
