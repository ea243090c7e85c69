"""Figures of ControlPlanes in AWS: a run that changes nothing, and many Shoots in one process.

    python -m bench control-planes          # 200 Shoots
    python -m bench control-planes -n 20    # fewer

The API server is real, and is seed and Shoot at once. The first table is about one ControlPlane:
its runs are measured alone in their process. The second is about `pergola extension run aws` as a
process: all ControlPlanes are created at once, and then all are reconciled again; the kernel
measures CPU seconds and memory. Clusters have the CloudProfile and workers of a recorded Shoot.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from bench.processes import Process, environment
from bench.tables import show
from bench.workers import Cost
from conformance.strategies.aws_control_planes import BASE, KEYS
from pergola import sandbox
from pergola.api.kinds import NAMESPACE
from pergola.api.objects import JsonObject, Key, map_at
from pergola.extension_api.cluster import CLUSTER, Cluster
from pergola.extension_api.kinds import CONTROL_PLANE
from pergola.extensions.actuator import Context
from pergola.garden.components.definitions import SHOOT_EXTENSIONS, load
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load as load_kubeconfig
from pergola.providers.aws.control_plane.actuator import AwsControlPlane
from pergola.runtime.clock import SystemClock
from pergola.runtime.logging import configure
from pergola.sandbox import Sandbox
from pergola.testing.crds import install_extension_crds, serve
from pergola.testing.extension_site import ExtensionSite
from pergola.testing.network_site import give_shoot_access, renamed
from pergola.testing.waiting import running
from tests.support.applied import report_applied
from tests.support.aws.machines import machine_fact

SHOOTS: Final = 200
PATIENCE: Final = 900.0
READS: Final = frozenset({"GET"})


@asynccontextmanager
async def started() -> AsyncGenerator[tuple[Client, Sandbox]]:
    """Yield an API server with the definitions of seeds."""
    own = await sandbox.start(f"bench-{os.getpid()}", components=sandbox.API_ONLY)
    try:
        async with Client.connect(load_kubeconfig(own.kubeconfig)) as client:
            await install_extension_crds(client)
            await serve(client, *load(SHOOT_EXTENSIONS))
            yield client, own
    finally:
        await own.stop()


async def control_plane(client: Client, kubeconfig: Path, name: str, of_type: str) -> ExtensionSite:
    """Create what gardenlet creates for a Shoot, and its ControlPlane."""
    namespace = f"shoot--bench--{name}"
    await client.create(
        {"apiVersion": "v1", "kind": NAMESPACE.kind, "metadata": {"name": namespace}}
    )
    site = ExtensionSite(client, namespace, CONTROL_PLANE, of_type)
    await give_shoot_access(client, namespace, kubeconfig)
    fact = machine_fact("base")["input"]["cluster"]["spec"]
    shoot = map_at(BASE, "cluster", "spec", "shoot")
    provider = {**map_at(shoot, "spec", "provider"), "workers": _workers(fact)}
    spec = {**shoot["spec"], "provider": provider}
    await site.put_cluster({**shoot, "spec": spec, "status": {"technicalID": namespace}})
    patch = {"spec": {"cloudProfile": fact["cloudProfile"]}}
    await client.patch(CLUSTER, Key("", namespace), patch)
    await client.create({**KEYS, "metadata": {"name": "cloudprovider", "namespace": namespace}})
    desired = {key: value for key, value in BASE["controlPlane"]["spec"].items() if key != "type"}
    reference = {"name": "cloudprovider", "namespace": namespace}
    await site.create("reconcile", spec={**desired, "secretRef": reference})
    return site


def _workers(cluster: JsonObject) -> list[JsonObject]:
    workers: list[JsonObject] = map_at(cluster, "shoot", "spec", "provider")["workers"]
    return workers


async def unchanged() -> tuple[str, ...]:
    """Return a row about a run that changes nothing."""
    sent: list[str] = []
    async with started() as (client, own):
        site = await control_plane(client, own.kubeconfig, "one", "bench")
        actuator = renamed(AwsControlPlane(), site.type)
        async with running(site.unit(actuator)):
            await site.until_operation("Create")
        await report_applied(client, site.namespace)
        async with Client.connect(
            load_kubeconfig(own.kubeconfig), observe=lambda method, *_: sent.append(method)
        ) as observed:
            worked, context = await site.read(), await _context(observed, site)

            async def reconcile() -> None:
                sent.clear()
                await actuator.reconcile(context, worked)

            await reconcile()  # the client learns which kinds there are
            run = await Cost.of(reconcile)
    writes = [method for method in sent if method not in READS]
    figures = str(len(sent)), str(len(writes)), f"{run.cpu:.2f}", f"{run.megabytes:.1f}"
    return "a run without a change", *figures


async def _context(client: Client, site: ExtensionSite) -> Context:
    """Return the context of a run outside of a controller, which writes no status."""

    async def ignore(*_: object) -> None:
        return None

    return Context(
        client=client,
        cluster=Cluster.from_object(await client.get(CLUSTER, Key("", site.namespace))),
        namespace=site.namespace,
        clock=SystemClock(),
        progress=ignore,
        save=ignore,
    )


@contextmanager
def extension(kubeconfig: Path, folder: Path) -> Iterator[Process]:
    """Run our extension for AWS."""
    pergola = str(Path(sys.executable).parent / "pergola")
    addresses = ("--health-bind-address", "127.0.0.1:0", "--metrics-bind-address", "127.0.0.1:0")
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [pergola, "extension", "run", "aws", "--kubeconfig", str(kubeconfig), *addresses],
            env=environment(),
            stdout=output,
            stderr=output,
        )
    try:
        yield Process(process, log)
    finally:
        process.terminate()
        process.wait(timeout=30)


async def many(count: int) -> list[tuple[str, ...]]:
    """Return rows about one process with many Shoots."""
    async with started() as (client, own):
        with (
            tempfile.TemporaryDirectory(prefix="pergola-bench-") as name,
            extension(own.kubeconfig, Path(name)) as process,
        ):
            began, cpu = time.monotonic(), process.cpu
            sites = [
                await control_plane(client, own.kubeconfig, str(number), "aws")
                for number in range(count)
            ]
            await _all(process, sites, "Create")
            created = _row("created", count, process, began, cpu)
            began, cpu = time.monotonic(), process.cpu
            for site in sites:
                await site.annotate("reconcile")
            await _all(process, sites, "Reconcile")
            return [created, _row("reconciled again", count, process, began, cpu)]


async def _all(process: Process, sites: list[ExtensionSite], operation: str) -> None:
    for site in sites:
        await site.until(lambda obj: _succeeded(obj, operation), patience=PATIENCE)
        process.check()


def _succeeded(obj: JsonObject, operation: str) -> bool:
    last = map_at(obj, "status", "lastOperation")
    return (last.get("type"), last.get("state")) == (operation, "Succeeded")


def _row(event: str, count: int, process: Process, began: float, cpu: float) -> tuple[str, ...]:
    each = (process.cpu - cpu) / count
    return (
        event,
        f"{count}",
        f"{time.monotonic() - began:.1f}",
        f"{each:.2f}",
        f"{process.peak_megabytes:.0f}",
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench control-planes")
    parser.add_argument("-n", "--shoots", type=int, default=SHOOTS)
    given = parser.parse_args().shoots
    configure("error", "text")
    show(
        [asyncio.run(unchanged())],
        ("one ControlPlane", "requests", "writes", "CPU s", "memory, MB"),
    )
    print()
    show(
        asyncio.run(many(given)),
        ("all ControlPlanes are", "Shoots", "seconds", "CPU s each", "peak memory, MB"),
    )
