"""`pergola up`: real clusters with Pergola at work in them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from rich.console import Console

    from pergola.cli.up.story import Story
    from pergola.sandbox import Progress

Flag = Annotated[bool, Parameter(negative="")]


def up(
    *,
    once: Flag = False,
    name: Annotated[str, Parameter(help="Name of the sandbox; two names run side by side.")] = "up",
    only: Literal["resources", "garden"] | None = None,
    simulated: Flag = False,
    examples: Annotated[
        Path | None,
        Parameter(help="Folder of manifests to apply instead of Pergola's examples."),
    ] = None,
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> None:
    """Start real clusters and show Pergola at work in them.

    Starts etcd, API server, controller manager, scheduler and simulated nodes; applies the examples
    as ManagedResources; edits an object and shows its repair; then shows tokens, NetworkPolicies,
    webhooks, and infrastructure in a simulated AWS. Then a Garden comes up in a cluster of its own:
    on a real node as root, otherwise on simulated ones. Runs until Ctrl-C and leaves nothing but
    caches. The first run builds all programs: eight minutes without a Garden, and up to an hour
    with one.

    Parameters
    ----------
    once
        Stop after the demonstration; exit 0 only if all of it succeeded.
    only
        Show only the chapters about managed resources, or only those about the Garden.
    simulated
        Run the Garden on simulated nodes even if this machine can run a real one.
    kubeconfig
        Use this cluster instead of a sandbox; without a Garden.
    context
        Context of that kubeconfig.
    """
    asyncio.run(_up(_Tour(once, name, only, simulated, examples, kubeconfig, context)))


@dataclass(frozen=True, slots=True)
class _Tour:
    """The options of the command."""

    once: bool
    name: str
    only: str | None
    simulated: bool
    examples: Path | None
    kubeconfig: Path | None
    context: str | None

    @property
    def has_resources(self) -> bool:
        return self.only != "garden"

    @property
    def has_garden(self) -> bool:
        is_plain = self.kubeconfig is None and self.examples is None
        return self.only != "resources" and is_plain

    @property
    def chapters(self) -> int:
        from pergola.cli.up import garden, managed_resources

        own_cluster, own_examples = self.kubeconfig is None, self.examples is None
        number = managed_resources.chapters(own_cluster=own_cluster, own_examples=own_examples)
        return self.has_resources * number + self.has_garden * garden.CHAPTERS


async def _up(tour: _Tour) -> None:
    from rich.console import Console

    from pergola.runtime.logging import configure
    from pergola.runtime.process.signals import ended_by_signals

    configure("error", "text")
    console = Console(highlight=False)
    with ended_by_signals() as stopped:
        show = asyncio.create_task(_show(tour, console))
        stop = asyncio.create_task(stopped.wait())
        await asyncio.wait({show, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not show.done():
            console.print("\nStopping …")
            show.cancel()
            await asyncio.gather(show, return_exceptions=True)
        else:
            await show


async def _show(tour: _Tour, console: "Console") -> None:
    from pergola.cli.up.story import Story

    story = Story(console, chapters=tour.chapters)
    async with AsyncExitStack() as stack:
        running: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        commands: list[str] = []
        if tour.has_resources:
            running, lines = await _show_resources(tour, story, stack)
            commands += lines
        if tour.has_garden:
            commands += await _show_garden(tour, story, stack)
        if not tour.once:
            _print_next_steps(console, commands)
            await running


async def _show_resources(
    tour: _Tour, story: "Story", stack: AsyncExitStack
) -> tuple[asyncio.Future[None], list[str]]:
    """Show the chapters about managed resources.

    Returns:
        The work of the resource manager, which goes on; and commands that show more.
    """
    from pergola.cli.crds.install import install
    from pergola.cli.up.managed_resources import resource_manager, show_resources
    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import load

    path = tour.kubeconfig or await stack.enter_async_context(
        _sandbox(tour.name, _say(story.console))
    )
    client = await stack.enter_async_context(Client.connect(load(path, tour.context)))
    await install(client)
    own_cluster = tour.kubeconfig is None
    manager, running = await stack.enter_async_context(
        resource_manager(client, webhooks=own_cluster)
    )
    await show_resources(
        client, manager.source, running, story, tour.examples, own_cluster=own_cluster
    )
    return running, [
        f"export KUBECONFIG={path}",
        "kubectl get managedresources --all-namespaces",
        "kubectl describe managedresource shop-web",
        "kubectl -n shop get all",
    ]


async def _show_garden(tour: _Tour, story: "Story", stack: AsyncExitStack) -> list[str]:
    """Show the chapters about a Garden, and return commands that show more."""
    from pergola.cli.up.garden import show_garden
    from pergola.cli.up.garden_places import on_a_node, simulated, why_simulated

    say = _say(story.console)
    why = "" if tour.simulated else why_simulated()
    if why:
        say(f"simulating the nodes of the Garden: {why}")
    place = simulated if tour.simulated or why else on_a_node
    runtime = await stack.enter_async_context(place(f"{tour.name}-garden", say))
    directory = runtime.kubeconfig.parent
    await show_garden(runtime, story, directory)
    return [
        f"export KUBECONFIG={runtime.kubeconfig}",
        f"pergola garden status --once --config {directory / 'operator.yaml'}",
        "kubectl get garden,managedresources --all-namespaces",
        f"kubectl --kubeconfig {directory / 'virtual.kubeconfig'} get namespaces",
    ]


def _print_next_steps(console: "Console", commands: list[str]) -> None:
    console.print("\nEverything keeps running until Ctrl-C. In another terminal:")
    for command in commands:
        console.print(f"    {command}", soft_wrap=True)


def _say(console: "Console") -> "Progress":
    def say(line: str) -> None:
        console.print(line)

    return say


@asynccontextmanager
async def _sandbox(name: str, say: "Progress") -> AsyncIterator[Path]:
    from pergola import sandbox

    started = await sandbox.start(name, progress=say)
    try:
        yield started.kubeconfig
    finally:
        await started.stop()
