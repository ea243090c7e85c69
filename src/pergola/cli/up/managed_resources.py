"""The chapters of `pergola up` about ManagedResources: they become ready, and are repaired."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pergola.api.kinds import CONFIG_MAP
from pergola.cli.up.story import UpError
from pergola.runtime.task_group import TaskGroup
from pergola.shipped import EXAMPLES

if TYPE_CHECKING:
    from pergola.api.objects import Key
    from pergola.cli.up.story import Story
    from pergola.kube.client import Client
    from pergola.resource_manager.manager import ResourceManager
    from pergola.resource_manager.source import Source

_READY_SECONDS: Final = 120.0
_REPAIR_SECONDS: Final = 10.0


def chapters(*, own_cluster: bool, own_examples: bool) -> int:
    """Return the number of chapters.

    Args:
        own_cluster: Whether the cluster is a sandbox, whose API server reaches this process.
        own_examples: Whether Pergola's examples are applied, on which the later chapters build.
    """
    if not own_examples:
        return 1
    return 5 if own_cluster else 3


async def show_resources(
    client: "Client",
    source: "Source",
    running: asyncio.Task[None],
    story: "Story",
    examples: Path | None,
    *,
    own_cluster: bool,
) -> None:
    """Apply examples, and show what the resource manager makes of them.

    Args:
        running: The resource manager.
        examples: A folder of manifests; None for Pergola's.

    Raises:
        UpError: A step failed, or took too long.
    """
    from pergola.cli.up.aws import show_aws
    from pergola.cli.up.tour import show_network_policies, show_token, show_webhooks

    folder = examples or EXAMPLES / "managed-resource"
    applied = await apply_examples(client, folder)
    story.chapter(f"Keep {len(applied)} ManagedResources in shape")
    story.say(f"Applied from {folder}")
    await until_ready(source, applied, running, story)
    if examples is not None:
        return
    await show_repair(client, story)
    story.chapter("Renew a token, and write NetworkPolicies")
    await show_token(client, story)
    await show_network_policies(client, story)
    if own_cluster:
        story.chapter("Change pods at admission")
        await show_webhooks(client, story)
        story.chapter("Create infrastructure in AWS, simulated by moto")
        await show_aws(client, story)


@asynccontextmanager
async def resource_manager(
    client: "Client", *, webhooks: bool
) -> AsyncIterator[tuple["ResourceManager", asyncio.Task[None]]]:
    """Run the resource manager in this process, with webhooks if the cluster reaches it."""
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

    from pergola.cli.up.table import is_ready, table

    loop = asyncio.get_running_loop()
    began = loop.time()
    changed = asyncio.Event()
    source.resources.subscribe(lambda _: changed.set())
    with Live(console=story.console, refresh_per_second=8) as live:
        while True:
            rows = [(key, source.resource(key)) for key in keys]
            objects = [(key, seen.unpack() if seen else None) for key, seen in rows]
            live.update(table(objects))
            if all(resource is not None and is_ready(resource) for _, resource in objects):
                break
            if running.done():
                await running
            if loop.time() - began > _READY_SECONDS:
                raise UpError(f"not ready after {_READY_SECONDS:.0f} s; the table shows why")
            changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await changed.wait()
    story.console.print()
    story.say(f"All applied, healthy and rolled out after {loop.time() - began:.1f} s.")


async def show_repair(client: "Client", story: "Story") -> None:
    """Edit an object as a user of kubectl would, and measure its repair."""
    from pergola.api.objects import Key
    from pergola.kube.selectors import select_name
    from pergola.kube.watch import watch

    story.chapter("Repair a manual edit")
    gvk, key = CONFIG_MAP, Key("shop", "web-features")
    before = await client.get(gvk, key)
    resource = await client.resource(gvk)
    loop = asyncio.get_running_loop()
    edited = await client.patch(gvk, key, {"data": {"checkout": "off"}})
    began = loop.time()
    story.say(f"Edited ConfigMap {key}: checkout=off")
    events = watch(
        client,
        resource,
        key.namespace,
        fields=select_name(key.name),
        resource_version=edited["metadata"]["resourceVersion"],
        timeout_seconds=60,
    )
    try:
        async with asyncio.timeout(_REPAIR_SECONDS), aclosing(events):
            async for event in events:
                if event.type == "MODIFIED" and event.object["data"] == before["data"]:
                    break
    except TimeoutError:
        raise UpError(f"ConfigMap {key} was not repaired in {_REPAIR_SECONDS:.0f} s") from None
    milliseconds = (loop.time() - began) * 1000
    back = before["data"]["checkout"]
    story.say(f"Repaired after [bold]{milliseconds:.0f} ms[/]: checkout={back}")
