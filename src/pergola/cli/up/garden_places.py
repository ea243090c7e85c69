"""Where `pergola up` runs its Garden: on a real node, or on simulated ones.

On a real node the operator runs from its chart, and everything else as pods. On simulated nodes the
operator is part of this process, and the virtual cluster is a second control plane of processes.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.kube.client import Client
    from pergola.sandbox import Progress

_GATEWAY: Final = ("virtual-garden-istio-ingress", "istio-ingressgateway")


@dataclass(frozen=True, slots=True)
class Place:
    """A runtime cluster in which the operator runs.

    Attributes:
        title: What runs there, for people.
        client: The administrator's.
        kubeconfig: The administrator's, too.
        gates: The feature gates of the operator that are not as by default.
        virtual: Returns a kubeconfig of the virtual cluster that works on this machine.
    """

    title: str
    client: "Client"
    kubeconfig: Path
    gates: "JsonObject"
    virtual: Callable[[], Awaitable["JsonObject"]]


def why_simulated() -> str:
    """Return why this machine cannot run a real node; empty if it can."""
    from pergola.sandbox.errors import SandboxError
    from pergola.sandbox.node import requirements

    try:
        requirements.check()
    except SandboxError as error:
        return str(error)
    return ""


@asynccontextmanager
async def on_a_node(name: str, say: "Progress") -> AsyncGenerator[Place]:
    """Start a real node with the operator, and stop it when the block ends."""
    from pergola.cli.garden.kubeconfig import at_address
    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import load
    from pergola.testing.garden_node import GATES, garden_node

    async with (
        garden_node(name, say) as sandbox,
        Client.connect(load(sandbox.kubeconfig)) as client,
    ):

        async def virtual() -> "JsonObject":
            document = await _access(sandbox.kubeconfig, internal=False)
            return at_address(document, await _gateway(client))

        yield Place("a real node", client, sandbox.kubeconfig, GATES, virtual)


@asynccontextmanager
async def simulated(name: str, say: "Progress") -> AsyncGenerator[Place]:
    """Start simulated nodes, run the operator in this process, and end both with the block."""
    from pergola.sandbox.simulated import garden_site
    from pergola.testing.garden_world import operating
    from pergola.testing.waiting import running

    async with garden_site(name, say) as site, running(*site.units), operating(site):

        async def virtual() -> "JsonObject":
            document = await _access(site.sandbox.kubeconfig, internal=True)
            return _through(document, site.node.proxy)

        yield Place("simulated nodes", site.client, site.sandbox.kubeconfig, {}, virtual)


async def _access(kubeconfig: Path, *, internal: bool) -> "JsonObject":
    from pergola.cli.garden.access import observe_access

    return (await observe_access(kubeconfig, None, internal=internal)).document


async def _gateway(client: "Client") -> str:
    """Return the address of the gateway to the virtual cluster."""
    from pergola.api.kinds import SERVICE
    from pergola.api.objects import Key, maps_at

    service = await client.get(SERVICE, Key(*_GATEWAY))
    [entry, *_] = maps_at(service, "status", "loadBalancer", "ingress")
    return str(entry["ip"])


def _through(document: "JsonObject", proxy: str) -> "JsonObject":
    """Return a kubeconfig whose clusters are reached through a proxy."""
    from pergola.api.objects import map_at, maps_at

    clusters = [
        {**each, "cluster": {**map_at(each, "cluster"), "proxy-url": proxy}}
        for each in maps_at(document, "clusters")
    ]
    return {**document, "clusters": list(clusters)}
