"""The chapter of `pergola up` about a Garden: it comes up, is used, and repairs itself."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pergola.api.kinds import DEPLOYMENT
from pergola.api.objects import Key, name_of
from pergola.cli.up.garden_progress import show_progress
from pergola.cli.up.repairs import delete
from pergola.cli.up.story import UpError, path_of, within
from pergola.shipped import EXAMPLES

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.cli.up.garden_places import Place
    from pergola.cli.up.story import Story
    from pergola.operator.reconcile.picture import Picture

_SECONDS: Final = 900.0
_CONFIGURATION: Final = "operator.yaml"
_REPAIRED: Final = ("garden", "gardener-scheduler")
_LISTED: Final = "namespaces"
_EXAMPLE: Final = EXAMPLES / "garden" / "garden.yaml"


async def show_garden(place: "Place", story: "Story") -> Path:
    """Bring up a Garden, use its virtual cluster, and delete an object, which is then restored.

    Returns:
        A kubeconfig of the virtual cluster.

    Raises:
        UpError: Something did not happen in time.
    """
    directory = place.kubeconfig.parent
    await _bring_up(place, story, directory)
    virtual = await _use(place, story, directory)
    key = Key(*_REPAIRED)
    seconds = await delete(place.client, DEPLOYMENT, key)
    story.say(f"Deleted Deployment {key}: restored after [bold]{seconds * 1000:.0f} ms[/]")
    story.try_it(
        place.kubeconfig,
        f"pergola garden status --once --config {directory / _CONFIGURATION}",
        "kubectl get gardens,managedresources --all-namespaces",
        "kubectl -n garden delete deployment gardener-scheduler",
        f"kubectl --kubeconfig {virtual} get {_LISTED}",
    )
    return virtual


async def _bring_up(place: "Place", story: "Story", directory: Path) -> None:
    """Show the tasks while they run, then the health of the Garden."""
    from pergola.cli.garden.runtime_cluster import runtime_template
    from pergola.operator.reconcile.picture import following

    garden = _garden(story)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await place.client.create(garden)
    template = await runtime_template(place.client, _configuration(place, directory))
    what = f"Garden {name_of(garden)} to be healthy (`pergola garden why` says more)"
    async with (
        within(_SECONDS, what),
        following(place.client, name_of(garden), template) as pictures,
    ):
        last = await show_progress(_until_succeeded(pictures), story)
        seconds = loop.time() - began
        story.say(f"[green]Succeeded[/] after [bold]{seconds:.0f} s[/]; its conditions:")
        while not _is_healthy(last):
            last = await anext(pictures)
    for condition in last.conditions:
        story.line(f"{condition.get('type'):33}{condition.get('status')}")


def _garden(story: "Story") -> "JsonObject":
    """Return the Garden of the examples."""
    from pergola.kube.yaml import parse

    garden = parse(_EXAMPLE.read_text())
    if not isinstance(garden, dict):
        raise UpError(f"{_EXAMPLE} is not an object")
    story.say(f"Applied {path_of(_EXAMPLE)}")
    return garden


def _configuration(place: "Place", directory: Path) -> Path:
    """Write the configuration of the operator for commands that read it."""
    from pergola.api.operator_config import API_VERSION, KIND
    from pergola.kube.yaml import dump
    from pergola.sandbox.directory import write

    content: JsonObject = {"apiVersion": API_VERSION, "kind": KIND, "featureGates": place.gates}
    return write(directory / _CONFIGURATION, dump(content))


async def _until_succeeded(pictures: "AsyncIterator[Picture]") -> "AsyncIterator[Picture]":
    async for picture in pictures:
        yield picture
        if picture.operation.state == "Succeeded":
            return


def _is_healthy(picture: "Picture") -> bool:
    return all(each.get("status") == "True" for each in picture.conditions)


async def _use(place: "Place", story: "Story", directory: Path) -> Path:
    """List objects of the virtual cluster, with kubectl if it is installed; return a kubeconfig."""
    from pergola.kube.yaml import dump
    from pergola.sandbox.directory import write

    file = write(directory / "virtual.kubeconfig", dump(await place.virtual()))
    story.say(f"Its virtual cluster answers `kubectl get {_LISTED}`:")
    kubectl = shutil.which("kubectl")
    text = await (_kubectl(kubectl, file) if kubectl else _listed(file))
    for line in text.splitlines():
        story.line(line)
    return file


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
