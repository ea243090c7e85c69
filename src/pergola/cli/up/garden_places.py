"""The places where `pergola up` runs its Garden: a real node, or simulated ones.

On a real node, the operator runs from its chart, and everything else as pods. On simulated nodes,
the operator is a process of its own, and the virtual cluster is a second control plane of
processes.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pergola.cli.up.builds import announce, missing_for_a_node, missing_programs
from pergola.sandbox import binaries
from pergola.sandbox.on_demand import GARDENER_APISERVER, HELM

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.cli.up.story import Story
    from pergola.kube.client import Client
    from pergola.sandbox.simulated import Site

_GATEWAY: Final = ("virtual-garden-istio-ingress", "istio-ingressgateway")


@dataclass(frozen=True, slots=True)
class Place:
    """A runtime cluster in which the operator runs.

    Attributes:
        title: A description for people.
        client: The client of the administrator.
        kubeconfig: The kubeconfig of the administrator.
        gates: The feature gates of the operator that differ from the defaults.
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
async def on_a_node(name: str, story: "Story") -> AsyncGenerator[Place]:
    """Start a real node with the operator, and stop it when the block ends."""
    from pergola.cli.garden.kubeconfig import at_address
    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import load
    from pergola.sandbox.node.garden import GATES, garden_node

    missing = await asyncio.to_thread(missing_for_a_node)
    announce(story, missing, "up to an hour on two cores")
    async with AsyncExitStack() as stack:
        with story.working() as progress:
            sandbox = await stack.enter_async_context(garden_node(name, progress))
        client = await stack.enter_async_context(Client.connect(load(sandbox.kubeconfig)))

        async def virtual() -> "JsonObject":
            document = await _access(sandbox.kubeconfig, internal=False)
            return at_address(document, await _gateway(client))

        yield Place("a real node", client, sandbox.kubeconfig, GATES, virtual)


@asynccontextmanager
async def simulated(name: str, story: "Story") -> AsyncGenerator[Place]:
    """Start simulated nodes and run the operator beside them, until the end of the block."""
    from pergola.cli.up.operator_process import operator_process
    from pergola.sandbox.simulated import garden_site

    programs = (HELM, GARDENER_APISERVER)
    announce(story, missing_programs(programs), "about ten minutes on two cores")
    async with AsyncExitStack() as stack:
        with story.working() as progress:
            await asyncio.to_thread(binaries.find, programs, progress)
            site = await stack.enter_async_context(garden_site(name, progress))
            await stack.enter_async_context(operator_process(site))
        yield place_of(site)


def place_of(site: "Site") -> Place:
    """Return a cluster with simulated nodes as a place."""

    async def virtual() -> "JsonObject":
        document = await _access(site.sandbox.kubeconfig, internal=True)
        return through(document, site.node.proxy)

    return Place("simulated nodes", site.client, site.sandbox.kubeconfig, {}, virtual)


async def _access(kubeconfig: Path, *, internal: bool) -> "JsonObject":
    from pergola.cli.cluster_options import ClusterOptions
    from pergola.cli.garden.access import observe_access

    cluster = ClusterOptions(kubeconfig=kubeconfig)
    return (await observe_access(cluster, internal=internal)).document


async def _gateway(client: "Client") -> str:
    """Return the address of the gateway to the virtual cluster."""
    from pergola.api.kinds import SERVICE
    from pergola.api.objects import Key, maps_at

    service = await client.get(SERVICE, Key(*_GATEWAY))
    [entry, *_] = maps_at(service, "status", "loadBalancer", "ingress")
    return str(entry["ip"])


def through(document: "JsonObject", proxy: str) -> "JsonObject":
    """Return a kubeconfig whose clusters are reached through a proxy."""
    from pergola.api.objects import map_at, maps_at

    clusters = [
        {**each, "cluster": {**map_at(each, "cluster"), "proxy-url": proxy}}
        for each in maps_at(document, "clusters")
    ]
    return {**document, "clusters": list(clusters)}
