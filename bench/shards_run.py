"""Shards at work: resource managers that share ManagedResources, assigned by the real sharder.

Each run has a new sandbox. All shards start before the ManagedResources are created, so that none
moves. The shards count their own requests; the kernel measures CPU time and memory.
"""

import asyncio
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import aiohttp
import orjson

from bench.managed_resources import PATIENCE
from bench.processes import Process, Program, installed, resource_manager
from bench.tables import Rows
from bench.writes import NAMESPACE, fill
from pergola import sandbox
from pergola.api.kinds import LEASE
from pergola.api.objects import labels_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.runtime.process.sharding.ring import RING_LABEL, Share
from pergola.testing.crds import install_crds
from pergola.testing.world import is_applied
from tests.support.ports import held_port
from tests.support.sharder import ring, sharder

_RING: Final = Share("bench", "")
_POLL_SECONDS: Final = 2.0
_REQUESTS: Final = re.compile(
    r'^rest_client_requests_total\{.*method="(\w+)".*\} (\S+)', re.MULTILINE
)
_LEASE_TIMES: Final = {"leaseDuration": "60s", "renewDeadline": "50s", "retryPeriod": "2s"}
"""A busy machine must not lose a Lease."""


class Shard(NamedTuple):
    """The figures of one shard once all ManagedResources are applied."""

    resources: int
    reads: int
    writes: int
    cpu: float
    megabytes: float


async def rows(count: int, objects: int, shards: tuple[int, ...]) -> Rows:
    """Return the figures for each number of shards, each in a new sandbox."""
    runs = []
    for number in shards:
        runs.append(await _run(count, objects, number))
        print(f"{number} shard(s) done", file=sys.stderr)

    def row(name: str, cell: str, pick: str) -> tuple[str, ...]:
        def text(run: list[Shard]) -> str:
            return " / ".join(format(getattr(shard, pick), cell) for shard in run)

        return name, *map(text, runs)

    total = [sum(shard.megabytes for shard in run) for run in runs]
    return [
        row("ManagedResources of each shard", ",", "resources"),
        row("writes of each shard", ",", "writes"),
        row("reads of each shard, with lists and watches", ",", "reads"),
        row("CPU seconds of each shard", ".1f", "cpu"),
        row("peak memory of each shard, MB", ".0f", "megabytes"),
        ("peak memory of all shards", *(f"{megabytes:.0f} MB" for megabytes in total)),
    ]


async def _run(count: int, objects: int, number: int) -> list[Shard]:
    started = await sandbox.start(f"shards-{os.getpid()}", progress=lambda _: None)
    try:
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            client = await stack.enter_async_context(Client.connect(load(started.kubeconfig)))
            await install_crds(client)
            await stack.enter_async_context(sharder(started, client, folder))
            resource = {"group": MANAGED_RESOURCE.group, "resource": "managedresources"}
            await client.create(ring(_RING.ring, NAMESPACE, resource))
            running = await stack.enter_async_context(_shards(started.kubeconfig, folder, number))
            await _until_leases(client, number)
            await fill(client, count, objects)
            assigned = await _until_applied(client, count, list(running.values()))
            return [
                await _figures(port, process, assigned[_name(folder / str(place))])
                for place, (port, process) in enumerate(running.items())
            ]
    finally:
        await started.stop()


@asynccontextmanager
async def _shards(
    kubeconfig: Path, folder: Path, number: int
) -> AsyncGenerator[dict[int, Process]]:
    """Run shards while the block lasts; yield them by the ports of their metrics."""
    program, running = installed(), dict[int, Process]()
    async with AsyncExitStack() as stack:
        for shard in range(number):
            port = stack.enter_context(held_port())
            place = folder / str(shard)
            place.mkdir()
            running[port] = stack.enter_context(
                resource_manager(_sharing(program, port), kubeconfig, place)
            )
        yield running


def _sharing(program: Program, port: int) -> Program:
    server = {"healthProbes": {"port": 0}, "metrics": {"bindAddress": "127.0.0.1", "port": port}}
    election = {"leaderElect": True, "resourceNamespace": "kube-system", **_LEASE_TIMES}
    sharding = {"controllerRing": _RING.ring}
    settings = {"server": server, "leaderElection": election, "sharding": sharding}
    return program._replace(settings={**settings, "logLevel": "info"})


async def _until_leases(client: Client, number: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while len(await client.list(LEASE, labels=f"{RING_LABEL}={_RING.ring}")) < number:  # noqa: ASYNC110 - a bench may poll
            await asyncio.sleep(_POLL_SECONDS)


async def _until_applied(client: Client, count: int, running: list[Process]) -> Counter[str]:
    """Return the number of ManagedResources of each shard once all of them are applied."""
    while True:
        for process in running:
            process.check()
        found = await client.list(MANAGED_RESOURCE, NAMESPACE)
        if len(found) == count and all(map(is_applied, found)):
            return Counter(labels_of(obj)[_RING.shard_label] for obj in found)
        await asyncio.sleep(_POLL_SECONDS)


def _name(place: Path) -> str:
    """Return the name of the shard whose log is in a folder."""
    lines = map(orjson.loads, (place / "log").read_bytes().splitlines())
    lease = next(line["lease"] for line in lines if line["msg"] == "became shard")
    return str(lease).partition("/")[2]


async def _figures(port: int, process: Process, resources: int) -> Shard:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/metrics") as answer,
    ):
        text = await answer.text()
    requests: Counter[str] = Counter()
    for method, value in _REQUESTS.findall(text):
        requests[method] += int(float(value))
    reads = requests.pop("GET", 0)
    return Shard(resources, reads, requests.total(), process.cpu, process.peak_megabytes)
