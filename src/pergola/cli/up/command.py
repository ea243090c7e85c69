"""`pergola up`: a real cluster with Pergola at work in it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from pergola.api.kinds import CONFIG_MAP

if TYPE_CHECKING:
    from rich.console import Console
    from rich.padding import Padding

    from pergola.api.objects import JsonObject, Key
    from pergola.cli.up.story import Story
    from pergola.kube.client import Client
    from pergola.resource_manager.manager import ResourceManager
    from pergola.resource_manager.source import Source
    from pergola.sandbox import Progress

_READY_SECONDS: Final = 120.0
_REPAIR_SECONDS: Final = 10.0
_CONDITIONS: Final = {"Applied": "True", "Healthy": "True", "Progressing": "False"}


class UpError(Exception):
    """The demonstration failed; the text says where."""


def up(
    *,
    once: bool = False,
    name: Annotated[str, Parameter(help="Name of the sandbox; two names run side by side.")] = "up",
    examples: Annotated[
        Path | None,
        Parameter(help="Folder of manifests to apply instead of Pergola's examples."),
    ] = None,
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> None:
    """Start a real cluster and show Pergola at work in it.

    The first run builds the cluster's programs, which takes about eight minutes. Starts etcd, API
    server, controller manager, scheduler and simulated nodes; applies the examples as
    ManagedResources; edits an object and shows its repair; then shows tokens, NetworkPolicies,
    webhooks, and infrastructure in a simulated AWS. Runs until Ctrl-C and leaves nothing but
    caches.

    Parameters
    ----------
    once
        Stop after the demonstration; exit 0 only if all of it succeeded.
    kubeconfig
        Use this cluster instead of a sandbox.
    context
        Context of that kubeconfig.
    """
    asyncio.run(_up(once, name, examples or _examples(), kubeconfig, context))


async def _up(
    once: bool, name: str, examples: Path, kubeconfig: Path | None, context: str | None
) -> None:
    from rich.console import Console

    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import load
    from pergola.runtime.logging import configure
    from pergola.runtime.process.signals import ended_by_signals

    configure("error", "text")
    console = Console(highlight=False)
    async with AsyncExitStack() as stack:
        stopped = stack.enter_context(ended_by_signals())
        path = kubeconfig
        if path is None:
            path = await stack.enter_async_context(_sandbox(name, _say(console)))
        client = await stack.enter_async_context(Client.connect(load(path, context)))
        show = asyncio.create_task(
            _show(client, examples, console, path, once=once, own_cluster=kubeconfig is None)
        )
        stop = asyncio.create_task(stopped.wait())
        await asyncio.wait({show, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not show.done():
            console.print("\nStopping …")
            show.cancel()
            await asyncio.gather(show, return_exceptions=True)
        else:
            await show


async def _show(
    client: "Client",
    examples: Path,
    console: "Console",
    kubeconfig: Path,
    *,
    once: bool,
    own_cluster: bool,
) -> None:
    from pergola.cli.crds.install import install
    from pergola.cli.up.aws import show_aws
    from pergola.cli.up.story import Story
    from pergola.cli.up.tour import show_network_policies, show_token, show_webhooks

    await install(client)
    async with _resource_manager(client, webhooks=own_cluster) as (manager, running):
        applied = await _apply(client, examples)
        is_shop = _is_shop(applied)
        story = Story(console, chapters=1 if not is_shop else 5 if own_cluster else 3)
        story.chapter(f"Keep {len(applied)} ManagedResources in shape")
        story.say(f"Applied from {examples}")
        await _until_ready(manager.source, applied, running, story)
        if is_shop:
            await _edit_and_repair(client, story)
            story.chapter("Renew a token, and write NetworkPolicies")
            await show_token(client, story)
            await show_network_policies(client, story)
        if is_shop and own_cluster:
            story.chapter("Change pods at admission")
            await show_webhooks(client, story)
            story.chapter("Create infrastructure in AWS, simulated by moto")
            await show_aws(client, story)
        _next_steps(console, kubeconfig, stays=not once)
        if not once:
            await running


@asynccontextmanager
async def _resource_manager(
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
        async with asyncio.TaskGroup() as group:
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


async def _apply(client: "Client", examples: Path) -> list["Key"]:
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


async def _until_ready(
    source: "Source", keys: list["Key"], running: asyncio.Task[None], story: "Story"
) -> None:
    """Show a live table until everything is applied, healthy and rolled out."""
    from rich.live import Live

    loop = asyncio.get_running_loop()
    began = loop.time()
    changed = asyncio.Event()
    source.resources.subscribe(lambda _: changed.set())
    with Live(console=story.console, refresh_per_second=8) as live:
        while True:
            rows = [(key, source.resource(key)) for key in keys]
            objects = [(key, seen.unpack() if seen else None) for key, seen in rows]
            live.update(_table(objects))
            if all(resource is not None and _is_ready(resource) for _, resource in objects):
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


def _table(rows: list[tuple["Key", "JsonObject | None"]]) -> "Padding":
    from rich.padding import Padding
    from rich.table import Table

    table = Table(box=None, header_style="dim", pad_edge=False)
    for column in ("MANAGEDRESOURCE", "OBJECTS", "APPLIED", "HEALTHY", "PROGRESSING", ""):
        table.add_column(column)
    for key, resource in rows:
        states = [_condition(resource, f"Resources{what}") for what in _CONDITIONS]
        count = len(((resource or {}).get("status") or {}).get("resources") or [])
        why = next((m for s, m, good in states if s != good and s), "")
        cells = [_coloured(status, good) for status, _, good in states]
        table.add_row(str(key), str(count), *cells, why.partition("\n")[0][:60])
    return Padding(table, (0, 0, 0, 4))


def _condition(resource: "JsonObject | None", kind: str) -> tuple[str, str, str]:
    """Return the status, the message, and the good status."""
    good = _CONDITIONS[kind.removeprefix("Resources")]
    for found in ((resource or {}).get("status") or {}).get("conditions") or []:
        if found.get("type") == kind:
            return found.get("status", ""), found.get("message", ""), good
    return "", "", good


def _coloured(status: str, good: str) -> str:
    if not status:
        return "[dim]…[/]"
    return f"[green]{status}[/]" if status == good else f"[yellow]{status}[/]"


def _is_ready(resource: "JsonObject") -> bool:
    from pergola.health import check_rolled_out

    return check_rolled_out(resource) is None


async def _namespace(client: "Client", name: str) -> None:
    from pergola.kube.errors import AlreadyExists

    with suppress(AlreadyExists):
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def _is_shop(applied: list["Key"]) -> bool:
    """Return whether these are the examples that the other chapters build on."""
    return any(key.name == "shop-web" for key in applied)


async def _edit_and_repair(client: "Client", story: "Story") -> None:
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


def _next_steps(console: "Console", kubeconfig: Path, *, stays: bool) -> None:
    if stays:
        console.print(
            f"""
Everything keeps running until Ctrl-C. In another terminal:
    export KUBECONFIG={kubeconfig}
    kubectl get managedresources --all-namespaces
    kubectl describe managedresource shop-web
    kubectl -n shop get all""",
            soft_wrap=True,
        )


def _say(console: "Console") -> "Progress":
    def say(line: str) -> None:
        console.print(line)

    return say


def _examples() -> Path:
    """Return the folder of examples, in the package or in a checkout."""
    here = Path(__file__).resolve()
    for folder in (here.parent / "examples", here.parents[4] / "examples" / "managed-resource"):
        if folder.is_dir():
            return folder
    raise UpError("the examples are not installed; give a folder with --examples")


@asynccontextmanager
async def _sandbox(name: str, say: "Progress") -> AsyncIterator[Path]:
    from pergola import sandbox

    started = await sandbox.start(name, progress=say)
    try:
        yield started.kubeconfig
    finally:
        await started.stop()
