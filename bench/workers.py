"""Figures of Workers: 50 pools in three zones with 100, 300 and 1,000 machines.

    python -m bench workers           # all three sizes
    python -m bench workers -n 100    # one of them

The API server is real. machine-controller-manager is not: it would need an hour for a thousand
machines here, so the benchmark writes the objects that it leaves. A run without a change is
measured alone in its process: CPU, requests, and the peak of the memory that it allocates. So is
reading all machine objects, as runs do that let machines go. The last column is the time from the
status of the last MachineDeployment until the Worker has succeeded, the median of some runs.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, NamedTuple

from bench.tables import show
from pergola import sandbox
from pergola.api.kinds import MACHINE_DEPLOYMENT, NAMESPACE
from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.extensions.workers.distribution import share
from pergola.extensions.workers.live import KINDS, read_live
from pergola.garden.components.definitions import SHOOT_EXTENSIONS, load
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load as load_kubeconfig
from pergola.runtime.logging import configure
from pergola.sandbox.aws.corrections import QUICK, CorrectedAws
from pergola.sandbox.aws.moto import moto
from pergola.testing.crds import install_extension_crds, serve
from pergola.testing.waiting import running
from tests.support.aws.site import REGION
from tests.support.aws.worker_site import WorkerSite
from tests.support.machine_controllers import MachineControllers, serve_machines
from tests.support.simulated_machines import complete, interrupt, simulate_machines

POOLS: Final = 50
SIZES: Final = (100, 300, 1000)
RUNS: Final = 5
HEADINGS: Final = (
    "machines",
    "first run, requests",
    "run without a change: requests",
    "CPU s",
    "memory, MB",
    "reading all objects: CPU s",
    "memory of that, MB",
    "end of a wait, s",
)
MIB: Final = 1 << 20
_UPDATED: Final = "machineDeploymentsLastUpdateTime"


class Cost(NamedTuple):
    """The median of some runs, and the memory of another one, which tracing slows down."""

    cpu: float
    megabytes: float

    @classmethod
    async def of(cls, act: Callable[[], Awaitable[object]]) -> "Cost":
        """Measure an act that may be repeated."""
        times = []
        for _ in range(RUNS):
            began = time.process_time()
            await act()
            times.append(time.process_time() - began)
        tracemalloc.start()
        await act()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return cls(statistics.median(times), peak / MIB)


async def measure(client: Client, kubeconfig: Path, server: str, machines: int) -> tuple[str, ...]:
    """Return a row of the table."""
    async with CorrectedAws(server) as aws, aws.client(REGION, retry=QUICK) as account:
        return await _measure(client, kubeconfig, account, aws.url, machines)


async def _measure(
    client: Client, kubeconfig: Path, aws: AwsClient, endpoint: str, machines: int
) -> tuple[str, ...]:
    namespace = f"shoot--bench--{machines}"
    await client.create(
        {"apiVersion": "v1", "kind": NAMESPACE.kind, "metadata": {"name": namespace}}
    )
    sent: list[str] = []
    with tempfile.TemporaryDirectory(prefix="pergola-bench-") as folder:
        controllers = MachineControllers(Path(folder), kubeconfig, namespace, endpoint)
        site = await WorkerSite.open(client, namespace, aws, controllers)
    pools = site.pools(
        *(
            {
                "name": f"p{index}",
                "minimum": share(machines, index, POOLS),
                "maximum": machines,
            }
            for index in range(POOLS)
        )
    )
    actuator = await site.create_worker(*pools)
    async with Client.connect(
        load_kubeconfig(kubeconfig), observe=lambda method, *_: sent.append(method)
    ) as observed:
        async with running(site.unit(actuator, client=observed)):
            await site.until(lambda worker: "machineDeployments" in worker.get("status", {}))
            first = len(sent)
            deployments = await client.list(MACHINE_DEPLOYMENT, namespace)
            await simulate_machines(client, deployments)
            await complete(client, deployments)
            await site.until_reconciled()
            ends = [await _end_of_a_wait(site, deployments[0]) for _ in range(RUNS)]
        worker, context = await site.read(), site.context(observed)

        async def reconcile() -> None:
            sent.clear()
            await actuator.reconcile(context, worker)

        run = await Cost.of(reconcile)
        requests = len(sent)
        reading = await Cost.of(lambda: read_live(observed, namespace, KINDS))
    await site.clean_up()
    return (
        f"{machines:,}",
        f"{first}",
        f"{requests}",
        f"{run.cpu:.2f}",
        f"{run.megabytes:.1f}",
        f"{reading.cpu:.2f}",
        f"{reading.megabytes:.1f}",
        f"{statistics.median(ends):.2f}",
    )


async def _end_of_a_wait(site: WorkerSite, last: JsonObject) -> float:
    """Return the seconds until a run that waits notices that the last machines run."""
    before = (await site.read())["status"][_UPDATED]
    await interrupt(site.client, last)
    await site.annotate("reconcile")
    await site.until(lambda worker: worker["status"][_UPDATED] != before)
    began = time.monotonic()
    await complete(site.client, [last])
    await site.until_reconciled()
    return time.monotonic() - began


async def rows(server: str, sizes: list[int]) -> list[tuple[str, ...]]:
    """Return all measurements."""
    started = await sandbox.start(f"bench-{os.getpid()}", components=sandbox.API_ONLY)
    try:
        async with Client.connect(load_kubeconfig(started.kubeconfig)) as client:
            await install_extension_crds(client)
            await serve(client, *load(SHOOT_EXTENSIONS))
            await serve_machines(client)
            return [await measure(client, started.kubeconfig, server, size) for size in sizes]
    finally:
        await started.stop()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench workers")
    parser.add_argument("-n", "--machines", type=int, help="one size only")
    given = parser.parse_args().machines
    configure("error", "text")
    with moto() as server:
        show(asyncio.run(rows(server, [given] if given else [*SIZES])), HEADINGS)
