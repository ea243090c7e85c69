"""The chapters of `pergola up` about a Garden: it comes up, is used, and repairs itself."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.markup import escape
from rich.padding import Padding

from pergola.api.objects import Key, name_of, resource_version_of, uid_of
from pergola.cli.up.story import UpError
from pergola.shipped import EXAMPLES

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.cli.up.garden_places import Place
    from pergola.cli.up.story import Story
    from pergola.operator.garden.picture import Picture

CHAPTERS: Final = 3

_SECONDS: Final = 900.0
_REPAIR_SECONDS: Final = 30.0
_REPAIRED: Final = ("garden", "gardener-scheduler")
_LISTED: Final = "namespaces"
_EXAMPLE: Final = EXAMPLES / "garden" / "garden.yaml"


async def show_garden(place: "Place", story: "Story", directory: Path) -> None:
    """Bring a Garden up, use its virtual cluster, and delete an object that is then restored.

    Args:
        directory: Receives the kubeconfig of the virtual cluster.

    Raises:
        UpError: Something did not happen in time.
    """
    story.chapter(f"Bring up a Garden on {place.title}")
    await _bring_up(place, story, directory)
    story.chapter("Use its virtual cluster")
    await _use(place, story, directory)
    story.chapter("Repair an object of the Garden")
    await _repair(place, story)


async def _bring_up(place: "Place", story: "Story", directory: Path) -> None:
    """Show the tasks while they run, then the health of the Garden."""
    from pergola.cli.garden.runtime_cluster import runtime_template
    from pergola.cli.garden.status_live import show
    from pergola.cli.garden.status_tree import health
    from pergola.operator.garden.picture import following

    garden = _garden(story)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await place.client.create(garden)
    template = await runtime_template(place.client, _configuration(place, directory))
    try:
        async with (
            asyncio.timeout(_SECONDS),
            following(place.client, name_of(garden), template) as pictures,
        ):
            last = await show(_until_succeeded(pictures), story.console)
            seconds = loop.time() - began
            story.say(f"[green]Succeeded[/] after [bold]{seconds:.0f} s[/]; checking its health")
            while not _is_healthy(last):
                last = await anext(pictures)
    except TimeoutError:
        raise UpError(f"the Garden was not ready after {_SECONDS:.0f} s") from None
    story.console.print(Padding(health(last), (0, 0, 0, 4)))


def _garden(story: "Story") -> "JsonObject":
    """Return the Garden of the examples."""
    from pergola.kube.yaml import parse

    garden = parse(_EXAMPLE.read_text())
    if not isinstance(garden, dict):
        raise UpError(f"{_EXAMPLE} is not an object")
    story.say(f"Applying {_EXAMPLE}")
    return garden


def _configuration(place: "Place", directory: Path) -> Path:
    """Write the configuration of the operator for commands that read it."""
    from pergola.api.operator_config import API_VERSION, KIND
    from pergola.kube.yaml import dump
    from pergola.sandbox.directory import write

    content: JsonObject = {"apiVersion": API_VERSION, "kind": KIND, "featureGates": place.gates}
    return write(directory / "operator.yaml", dump(content))


async def _until_succeeded(pictures: "AsyncIterator[Picture]") -> "AsyncIterator[Picture]":
    async for picture in pictures:
        yield picture
        if picture.operation.state == "Succeeded":
            return


def _is_healthy(picture: "Picture") -> bool:
    return all(each.get("status") == "True" for each in picture.conditions)


async def _use(place: "Place", story: "Story", directory: Path) -> None:
    """List objects of the virtual cluster, with kubectl if it is installed."""
    from pergola.kube.yaml import dump
    from pergola.sandbox.directory import write

    file = write(directory / "virtual.kubeconfig", dump(await place.virtual()))
    story.hint(f"kubectl --kubeconfig {file} get {_LISTED}")
    kubectl = shutil.which("kubectl")
    text = await (_kubectl(kubectl, file) if kubectl else _listed(file))
    for line in text.splitlines():
        story.say(escape(line))


async def _kubectl(program: str, kubeconfig: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *(program, "--kubeconfig", str(kubeconfig), "get", _LISTED),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise UpError(f"kubectl failed: {output.decode().strip()}")
    return output.decode()


async def _listed(kubeconfig: Path) -> str:
    """Return the names of the virtual cluster's namespaces."""
    from pergola.api.kinds import NAMESPACE
    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import load

    async with Client.connect(load(kubeconfig)) as client:
        return "\n".join(name_of(each) for each in await client.list(NAMESPACE))


async def _repair(place: "Place", story: "Story") -> None:
    """Delete a Deployment of Gardener, and measure how long it is away."""
    from pergola.api.kinds import DEPLOYMENT
    from pergola.kube.selectors import select_name
    from pergola.kube.watch import watch

    key = Key(*_REPAIRED)
    deleted = await place.client.get(DEPLOYMENT, key)
    resource = await place.client.resource(DEPLOYMENT)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await place.client.delete(DEPLOYMENT, key, uid=uid_of(deleted))
    story.say(f"Deleted Deployment {key}")
    events = watch(
        place.client,
        resource,
        key.namespace,
        fields=select_name(key.name),
        resource_version=resource_version_of(deleted),
        timeout_seconds=60,
    )
    try:
        async with asyncio.timeout(_REPAIR_SECONDS), aclosing(events):
            async for event in events:
                if uid_of(event.object) not in ("", uid_of(deleted)):
                    break
    except TimeoutError:
        raise UpError(f"Deployment {key} was not restored in {_REPAIR_SECONDS:.0f} s") from None
    story.say(f"Restored after [bold]{(loop.time() - began) * 1000:.0f} ms[/]")
