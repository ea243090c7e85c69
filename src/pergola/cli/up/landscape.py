"""The chapters of `pergola up` about a landscape: a Garden, a Seed and a Shoot."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pergola.cli.up.story import UpError, within

if TYPE_CHECKING:
    from pergola.api.objects import GroupVersionKind, JsonObject, Key
    from pergola.cli.up.story import Story
    from pergola.kube.client import Client
    from pergola.sandbox.aws.corrections import CorrectedAws
    from pergola.sandbox.evidence import Evidence
    from pergola.sandbox.landscape import Landscape, Reconciliation
    from pergola.sandbox.seed_node import NodeSite
    from pergola.sandbox.simulated import Site

COSTS: Final = "It takes three to five minutes on two cores, and 7 GiB of memory."
COSTS_WITH_NODE: Final = "It takes about five minutes on two cores, and 7 GiB of memory."
_BUILT_IN: Final = "about twenty minutes on two cores"
_BUILT_FOR_A_NODE: Final = "up to an hour on two cores"
_SECONDS: Final = 900.0
_EVERY_SECONDS: Final = 20.0
_STEP: Final = 10  # percent
_STATE_SECONDS: Final = 1.0


@asynccontextmanager
async def evidence(name: str) -> AsyncIterator["Evidence"]:
    """Describe the clusters in a folder if the block fails.

    Raises:
        UpError: The block failed; the text names the folder.
    """
    from pergola.kube.errors import KubeError
    from pergola.runtime.logging import describe
    from pergola.sandbox import binaries
    from pergola.sandbox.evidence import Evidence

    found = Evidence()
    try:
        yield found
    except Exception as error:
        folder = binaries.cache().with_name(f"{name}-failed")
        kept = f"conditions, events and logs of its clusters are in {folder}"
        try:
            await found.write(folder)
        except (OSError, KubeError) as problem:
            kept = f"its clusters cannot be described in {folder}: {problem}"
        raise UpError(f"{describe(error)}; {kept}") from error


async def show_garden(
    name: str,
    story: "Story",
    stack: AsyncExitStack,
    known: "Evidence",
    *,
    simulated: bool,
    aws: str = "",
) -> tuple["Landscape", Path]:
    """Bring up a Garden; return the landscape and a kubeconfig of the virtual cluster.

    Args:
        simulated: Whether the nodes of the Seed will be simulated.
        stack: Ends everything.
        known: Gets the clusters.
        aws: The URL of an AWS for machines of Shoots; empty for none.

    Raises:
        UpError: Something did not happen in time.
    """
    from pergola.cli.up import garden
    from pergola.cli.up.builds import announce, missing_for_a_landscape
    from pergola.cli.up.garden_places import place_of
    from pergola.cli.up.operator_process import operator_process
    from pergola.sandbox.landscape import landscape

    missing = await asyncio.to_thread(missing_for_a_landscape, simulated=simulated, aws=bool(aws))
    announce(story, missing, _BUILT_IN if simulated else _BUILT_FOR_A_NODE)
    with story.working() as progress:
        found = await stack.enter_async_context(landscape(name, progress, aws=aws))
        _add(known, "garden", found.garden)
        running = operator_process(found.garden, found.operator_environment)
        await stack.enter_async_context(running)
    virtual = await garden.show_garden(place_of(found.garden), story)
    known.add("virtual", virtual)
    return found, virtual


async def show_seed(
    found: "Landscape",
    virtual: Path,
    story: "Story",
    stack: AsyncExitStack,
    known: "Evidence",
    *,
    simulated: bool,
) -> "Site | NodeSite":
    """Create a Seed, and return its cluster when gardenlet has reconciled it.

    Args:
        known: Gets the cluster.
        simulated: Whether its nodes are simulated.

    Raises:
        UpError: It was not healthy in time.
    """
    from pergola.api.kinds import SEED
    from pergola.api.objects import Key
    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import load
    from pergola.sandbox.landscape import create_seed

    with story.working() as progress:
        site = found.seed_cluster if simulated else found.seed_node
        seed: Site | NodeSite = await stack.enter_async_context(site(progress=progress))
    _add(known, "seed", seed)
    kubeconfig = await asyncio.to_thread(seed.sandbox.kubeconfig.read_bytes)
    async with Client.connect(load(virtual)) as client:
        key = await create_seed(client, kubeconfig, found.chart)
        await _until_healthy(client, SEED, Key("", key.name), story)
    story.try_it(virtual, "kubectl get seeds,gardenlets --all-namespaces")
    story.try_it(
        seed.sandbox.kubeconfig,
        "kubectl -n garden get managedresources",
        "kubectl -n garden get pods",
    )
    return seed


async def show_shoot_on_aws(
    found: "Landscape",
    seed: "Site | NodeSite",
    virtual: Path,
    account: "CorrectedAws",
    story: "Story",
) -> None:
    """Install the extensions, create a Shoot on AWS, and show its nodes and their instances.

    Raises:
        UpError: It was not healthy in time.
    """
    from pergola.api.kinds import NODE, SEED, SHOOT
    from pergola.api.objects import map_at, name_of
    from pergola.api.texts import counted
    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import load
    from pergola.sandbox.landscape import create_shoot

    for extension, variables in (
        ("pergola-aws", {"AWS_ENDPOINT_URL": account.url}),
        ("networking-calico", {}),
    ):
        await _until_installed(found, await found.install(extension, variables))
        story.say(f"Extension {extension}: [green]installed[/]")
    async with Client.connect(load(virtual)) as client:
        # By itself, the scheduler chooses Seeds on AWS only.
        [chosen] = await client.list(SEED)
        patch: JsonObject = {"spec": {"seedName": name_of(chosen)}}
        key = await create_shoot(client, patch, example="shoot-on-aws.yaml")
        await _until_healthy(client, SHOOT, key, story)
        namespace = map_at(await client.get(SHOOT, key), "status")["technicalID"]
        own = await _write_access(client, key, seed, virtual.with_name("shoot-on-aws.kubeconfig"))
    async with Client.connect(load(own)) as shoot:
        nodes = await shoot.list(NODE)
    instances = ", ".join(sorted(str(map_at(node, "spec")["providerID"]) for node in nodes))
    story.say(f"It has {counted(len(nodes), 'node')}: {instances}")
    story.try_it(own, "kubectl get nodes", "kubectl -n kube-system get pods")
    story.try_it(
        seed.sandbox.kubeconfig,
        f"kubectl -n {namespace} get machinedeployments,machines",
        f"pergola why worker/{key.name} -n {namespace}",
        f"pergola aws show infrastructure/{key.name} -n {namespace} --endpoint-url {account.url}",
    )


async def _until_installed(found: "Landscape", key: "Key") -> None:
    from pergola.api.operator_v1alpha1 import EXTENSION
    from pergola.kube import states
    from pergola.operator.conditions import is_true

    async with (
        within(_SECONDS, f"Extension {key.name}"),
        aclosing(states.watched(found.garden.client, EXTENSION, key, _STATE_SECONDS)) as seen,
    ):
        async for obj in seen:
            if obj is not None and is_true(obj, "Installed"):
                return


async def show_shoot(seed: "Site | NodeSite", virtual: Path, story: "Story") -> None:
    """Create a Shoot, and use it as its owner does.

    Raises:
        UpError: It was not healthy in time.
    """
    from pergola.api.kinds import NAMESPACE, SHOOT
    from pergola.api.texts import counted
    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import load
    from pergola.sandbox.landscape import create_project, create_shoot

    async with Client.connect(load(virtual)) as client:
        await create_project(client)
        key = await create_shoot(client)
        await _until_healthy(client, SHOOT, key, story)
        own = await _write_access(client, key, seed, virtual.with_name("shoot.kubeconfig"))
    async with Client.connect(load(own)) as shoot:
        count = len(await shoot.list(NAMESPACE, metadata_only=True))
    story.say(f"Its user's kubeconfig works: the cluster has {counted(count, 'namespace')}.")
    story.try_it(
        seed.sandbox.kubeconfig,
        f"export GARDEN={virtual} SEED={seed.sandbox.kubeconfig} SHOOT={own}",
        "kubectl --kubeconfig $GARDEN get seeds,shoots --all-namespaces",
        "kubectl --kubeconfig $SEED get managedresources --all-namespaces",
        "kubectl --kubeconfig $SHOOT get namespaces",
    )


def _add(known: "Evidence", name: str, site: "Site | NodeSite") -> None:
    known.add(name, site.sandbox.kubeconfig, site.sandbox.directory, site.directory)


async def _until_healthy(
    client: "Client", kind: "GroupVersionKind", key: "Key", story: "Story"
) -> None:
    """Show what Gardener does until an object is reconciled and all its conditions are true.

    Raises:
        UpError: It was not healthy in time; the text says what Gardener was waiting for.
    """
    from pergola.sandbox.landscape import Reconciliation, following

    loop = asyncio.get_running_loop()
    began = printed = loop.time()
    last, percent = Reconciliation({}), -_STEP
    what = f"{kind.kind} {key}"
    try:
        async with within(_SECONDS, what), aclosing(following(client, kind, key)) as found:
            async for last in found:
                now = loop.time()
                if last.percent >= percent + _STEP or now >= printed + _EVERY_SECONDS:
                    percent, printed = last.percent, now
                    story.line(f"{now - began:4.0f} s {summary(last)}")
    except UpError as error:
        raise UpError(f"{error}: {summary(last).strip()}") from None
    story.say(f"{what}: [green]healthy[/] after [bold]{loop.time() - began:.0f} s[/]")


def summary(found: "Reconciliation") -> str:
    """Return the progress of an object in one line."""
    if not found.state:
        return "waiting until it is registered and accepted"
    problem = f"; failed: {found.errors[0]}" if found.errors else ""
    if found.state == "Succeeded" and found.unmet:
        return f"100 %  waiting for {', '.join(found.unmet)}"
    return f"{found.percent:3} %  {found.description}{problem}"


async def _write_access(client: "Client", key: "Key", seed: "Site | NodeSite", file: Path) -> Path:
    """Write a kubeconfig of a Shoot's administrator, who reaches it through the Seed's node."""
    from pergola.cli.up.garden_places import through
    from pergola.kube.yaml import dump, parse
    from pergola.sandbox.directory import write
    from pergola.sandbox.landscape import admin_kubeconfig

    document = parse(await admin_kubeconfig(client, key))
    if not isinstance(document, dict):
        raise UpError(f"the kubeconfig of Shoot {key} is not an object")
    return write(file, dump(through(document, seed.proxy)))
