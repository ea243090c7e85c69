"""The chapters of `pergola up` about ManagedResources: they become ready, and are repaired."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pergola.api.kinds import CONFIG_MAP
from pergola.api.texts import counted
from pergola.cli.up.repairs import delete, edit
from pergola.cli.up.story import UpError, path_of
from pergola.runtime.task_group import TaskGroup
from pergola.shipped import EXAMPLES

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject, Key
    from pergola.cli.up.story import Story
    from pergola.kube.client import Client
    from pergola.resource_manager.manager import ResourceManager
    from pergola.resource_manager.source import Source

_READY_SECONDS: Final = 180.0


async def show_resources(
    client: "Client",
    source: "Source",
    running: asyncio.Task[None],
    story: "Story",
    examples: Path | None,
) -> None:
    """Apply examples, and show what the resource manager makes of them.

    Args:
        running: The resource manager.
        examples: A folder of manifests; None for Pergola's, whose objects are then repaired.

    Raises:
        UpError: A step failed, or took too long.
    """
    folder = examples or EXAMPLES / "managed-resource"
    applied = await apply_examples(client, folder)
    story.say(f"Applied {counted(len(applied), 'ManagedResource')} of {path_of(folder)}")
    await until_ready(source, applied, running, story)
    if examples is None:
        await show_repairs(client, story)


@asynccontextmanager
async def resource_manager(
    client: "Client", *, webhooks: bool
) -> AsyncIterator[tuple["ResourceManager", asyncio.Task[None]]]:
    """Run the resource manager in this process, with webhooks if the cluster can reach it."""
    from pergola.cli.up.tour import configuration
    from pergola.resource_manager.assembly import Clusters, optional_controllers
    from pergola.resource_manager.configuration import options
    from pergola.resource_manager.manager import ResourceManager
    from pergola.resource_manager.serving import WebhookServing
    from pergola.runtime.metrics import Metrics

    config, metrics, clusters = (
        configuration(webhooks=webhooks),
        Metrics(),
        Clusters(client, client),
    )
    serving = WebhookServing(config, clusters, metrics)
    manager = ResourceManager(client, client, options(config), metrics=metrics)

    async def work() -> None:
        async with TaskGroup() as group:
            group.create_task(manager.run())
            await manager.source.synced()
            for part in (
                *serving.units,
                *optional_controllers(config, clusters, metrics),
                *serving.leading(),
            ):
                group.create_task(part.run(), name=part.name)

    async with AsyncExitStack() as stack:
        if webhooks:
            await _namespace(client, serving.installation.namespace)
            await stack.enter_async_context(serving.served())
        running = asyncio.create_task(work())
        try:
            yield manager, running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def _namespace(client: "Client", name: str) -> None:
    from pergola.kube.errors import AlreadyExists

    with suppress(AlreadyExists):
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


async def apply_examples(client: "Client", examples: Path) -> list["Key"]:
    """Apply all manifests of a folder in the order of their file names."""
    from pergola.api.objects import Key
    from pergola.kube.yaml import parse_documents

    files = await asyncio.to_thread(lambda: sorted(examples.glob("*.yaml")))
    if not files:
        raise UpError(f"no *.yaml files in {examples}")
    resources = []
    for file in files:
        for document in parse_documents(file.read_bytes()):
            if document.error is not None:
                raise UpError(f"{file}: document {document.index}: {document.error}")
            obj = document.value
            if isinstance(obj, dict):
                await client.apply(obj, manager="pergola-up", force=True)
                if obj.get("kind") == "ManagedResource":
                    resources.append(Key.of(obj))
    return resources


async def until_ready(
    source: "Source", keys: list["Key"], running: asyncio.Task[None], story: "Story"
) -> None:
    """Show a live table until everything is applied, healthy and rolled out."""
    from rich.live import Live
    from rich.padding import Padding

    from pergola.cli.up.table import is_ready, table

    loop = asyncio.get_running_loop()
    began = loop.time()
    changed = asyncio.Event()
    source.resources.subscribe(lambda _: changed.set())
    with Live(console=story.console, refresh_per_second=8, transient=True) as live:
        while True:
            rows = [(key, source.resource(key)) for key in keys]
            objects = [(key, seen.unpack() if seen else None) for key, seen in rows]
            live.update(Padding(table(objects), (0, 0, 0, 4)))
            if all(resource is not None and is_ready(resource) for _, resource in objects):
                break
            if running.done():
                await running
            if loop.time() - began > _READY_SECONDS:
                raise UpError(f"waited {_READY_SECONDS:.0f} s for {_unready(objects)}")
            changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await changed.wait()
    story.show(table(objects))
    story.say(f"All applied, healthy and rolled out after {loop.time() - began:.1f} s.")


def _unready(objects: list[tuple["Key", "JsonObject | None"]]) -> str:
    """Return the ManagedResources that are not ready, with the reasons."""
    from pergola.cli.up.table import is_ready, reason

    unready = [(key, obj) for key, obj in objects if obj is None or not is_ready(obj)]
    return "; ".join(f"ManagedResource {key}: {reason(obj)}" for key, obj in unready)


async def show_repairs(client: "Client", story: "Story") -> None:
    """Edit an object and delete it, as a user of kubectl would, and measure each repair."""
    from pergola.api.objects import Key

    key = Key("shop", "web-features")
    seconds = await edit(client, CONFIG_MAP, key, {"checkout": "off"})
    story.say(f"Edited ConfigMap {key}: reverted after [bold]{seconds * 1000:.0f} ms[/]")
    seconds = await delete(client, CONFIG_MAP, key)
    story.say(f"Deleted ConfigMap {key}: restored after [bold]{seconds * 1000:.0f} ms[/]")
