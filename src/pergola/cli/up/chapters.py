"""The chapters of `pergola up`, in their order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pergola.kube.client import Client
from pergola.kube.kubeconfig import load

if TYPE_CHECKING:
    from pergola.cli.up.options import Tour
    from pergola.cli.up.story import Story
    from pergola.sandbox import Sandbox

CONTROL_PLANE: Final = "A control plane on this machine"
RESOURCES: Final = "ManagedResources become objects, and stay that way"
EXTENSIONS: Final = "Webhooks, tokens, policies and a network at work"
GARDEN: Final = "A Garden comes up"
SEED: Final = "A Seed joins the Garden"
SHOOT: Final = "A user creates a Shoot"
SHOOT_ON_AWS: Final = "A user creates a Shoot on AWS"
AROUND: Final = "Look around"


async def tell(tour: "Tour", story: "Story") -> None:
    """Show all chapters, then return with `--once`, or otherwise when the resource manager ends.

    Raises:
        UpError: A step failed, or took too long.
    """
    async with AsyncExitStack() as stack:
        running: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        kubeconfig, commands = Path(), []
        if tour.has_resources:
            kubeconfig, running = await _resources(tour, story, stack)
            commands = ["pergola why deploy/web -n shop"]
        if tour.has_landscape:
            kubeconfig = await _landscape(tour, story, stack)
            commands = ["kubectl get managedresources --all-namespaces"]
        elif tour.has_garden:
            kubeconfig = await _garden(tour, story, stack)
            commands = ["pergola why deploy/gardener-scheduler -n garden"]
        if not tour.has_own_examples:
            commands = ["kubectl get managedresources --all-namespaces"]
        context = None if tour.has_garden else tour.context
        await _around(story, stack, kubeconfig, context, commands)
        if tour.once:
            story.say("[green]All chapters succeeded.[/]")
            return
        story.say("Everything keeps running until Ctrl-C, which leaves nothing behind.")
        await running


async def _resources(
    tour: "Tour", story: "Story", stack: AsyncExitStack
) -> tuple[Path, asyncio.Future[None]]:
    """Show the chapters about managed resources.

    Returns:
        The kubeconfig, and the running resource manager.
    """
    from pergola.cli.crds.install import install
    from pergola.cli.up.extensions import show_extensions
    from pergola.cli.up.managed_resources import resource_manager, show_resources

    path = tour.kubeconfig or await _control_plane(tour, story, stack)
    client = await stack.enter_async_context(Client.connect(load(path, tour.context)))
    story.chapter(
        RESOURCES,
        "A ManagedResource names Secrets with manifests. The resource manager creates their "
        "objects, reports their health, and repairs what anyone changes or deletes.",
    )
    await install(client)
    manager, running = await stack.enter_async_context(
        resource_manager(client, webhooks=tour.has_sandbox)
    )
    await show_resources(client, manager.source, running, story, tour.examples)
    if tour.has_own_examples:
        story.try_it(
            path,
            "kubectl get managedresources",
            "kubectl -n shop delete configmap web-features",
            "kubectl -n shop get configmaps",
        )
        story.chapter(
            EXTENSIONS,
            "Webhooks change pods at admission. Controllers issue tokens and write "
            "NetworkPolicies. The AWS extension builds five networks, in a simulated AWS.",
        )
        await show_extensions(client, path, story, stack, has_sandbox=tour.has_sandbox)
    return path, running


async def _control_plane(tour: "Tour", story: "Story", stack: AsyncExitStack) -> Path:
    from pergola.api.kinds import NODE
    from pergola.api.texts import counted
    from pergola.cli.up.builds import announce, missing_programs
    from pergola.cli.up.meanwhile import show_without_cluster
    from pergola.sandbox.components import ALL
    from pergola.sandbox.module import kubernetes_version

    story.chapter(
        CONTROL_PLANE,
        "etcd, kube-apiserver, kube-controller-manager and kube-scheduler start as processes of "
        "this user, on loopback only. kwok simulates nodes and their pods.",
    )
    if missing := missing_programs(ALL):
        announce(story, missing, "about eight minutes on two cores")
        await show_without_cluster(story)
    began = asyncio.get_running_loop().time()
    sandbox = await stack.enter_async_context(_sandbox(tour.name, story))
    seconds = asyncio.get_running_loop().time() - began
    async with Client.connect(load(sandbox.kubeconfig)) as client:
        nodes = len(await client.list(NODE))
    what = f"Kubernetes {kubernetes_version()} with {counted(nodes, 'simulated node')}"
    story.say(f"[green]Ready[/] after [bold]{seconds:.0f} s[/]: {what}.")
    story.try_it(sandbox.kubeconfig, "kubectl get nodes")
    return sandbox.kubeconfig


@asynccontextmanager
async def _sandbox(name: str, story: "Story") -> "AsyncIterator[Sandbox]":
    from pergola.sandbox import start

    with story.working() as progress:
        started = await start(name, progress=progress)
    try:
        yield started
    finally:
        await started.stop()


async def _garden(tour: "Tour", story: "Story", stack: AsyncExitStack) -> Path:
    """Show a Garden, and return the kubeconfig of its runtime cluster."""
    from pergola.cli.up.garden import show_garden
    from pergola.cli.up.garden_places import on_a_node, simulated, why_simulated

    why = "--simulated was given" if tour.simulated else why_simulated()
    story.chapter(
        GARDEN,
        "The operator brings up a Garden in a cluster of its own: a virtual cluster with etcd and "
        "API server, Gardener's control plane, and what they need, as a graph of tasks. That takes "
        "two to five minutes.",
    )
    if why:
        story.say(f"Its nodes are simulated: {why}.")
    place = simulated if why else on_a_node
    runtime = await stack.enter_async_context(place(f"{tour.name}-garden", story))
    await show_garden(runtime, story)
    return runtime.kubeconfig


async def _landscape(tour: "Tour", story: "Story", stack: AsyncExitStack) -> Path:
    """Show a Garden, a Seed and a Shoot, and return the kubeconfig of the Seed's cluster."""
    from pergola.cli.up import landscape
    from pergola.cli.up.garden_places import why_simulated
    from pergola.sandbox.landscape.aws import account_in_aws

    given = "--aws was given" if tour.aws else "--simulated was given"
    why = given if tour.simulated else why_simulated()
    simulated = bool(why)
    story.chapter(
        GARDEN,
        "A whole landscape: this Garden, a Seed and a Shoot, with Gardener's own control plane and "
        f"gardenlet. {landscape.COSTS if simulated else landscape.COSTS_WITH_NODE}",
    )
    nodes = f"All nodes are simulated: {why}." if why else "The Seed gets a real node."
    story.say(nodes)
    async with landscape.evidence(tour.name) as known:
        account = await stack.enter_async_context(account_in_aws()) if tour.aws else None
        found, virtual = await landscape.show_garden(
            tour.name, story, stack, known, simulated=simulated, aws=account.url if account else ""
        )
        story.chapter(
            SEED,
            "The operator installs the original's gardenlet in a second cluster. gardenlet "
            "registers the Seed and installs what every Seed has; Pergola is its resource manager.",
        )
        seed = await landscape.show_seed(found, virtual, story, stack, known, simulated=simulated)
        story.chapter(
            SHOOT,
            "Gardener's scheduler chooses the Seed, and gardenlet brings up the control plane of a "
            "cluster without workers. Pergola is its resource manager, too.",
        )
        await landscape.show_shoot(seed, virtual, story)
        if account is not None:
            story.chapter(
                SHOOT_ON_AWS,
                "Pergola's AWS extension makes a network, DNS records and machines for this Shoot; "
                "its network extension installs Calico. The account and the nodes are simulated; "
                "gardenlet and machine-controller-manager are the originals.",
            )
            await landscape.show_shoot_on_aws(found, seed, virtual, account, story)
    return seed.sandbox.kubeconfig


async def _around(
    story: "Story",
    stack: AsyncExitStack,
    kubeconfig: Path,
    context: str | None,
    commands: list[str],
) -> None:
    from pergola.cli.up.dashboard import dashboard

    story.chapter(
        AROUND,
        "The dashboard shows what needs attention in this cluster, why, and flows while they run. "
        "`pergola why` explains any object: who wants it, and what it waits for.",
    )
    config = load(kubeconfig, context)
    client = await stack.enter_async_context(Client.connect(config))
    await stack.enter_async_context(dashboard(client, config.context, story))
    story.try_it(kubeconfig, *commands, "pergola dashboard --open")
