"""Shards at work: resource managers that share ManagedResources, assigned by the real sharder.

Each run has a new sandbox. All shards start before the ManagedResources are created, so that none
moves. At the end, one of several shards is killed, and the others take over. The shards count their
own requests; the kernel measures CPU time and memory.
"""

import asyncio
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import aiohttp
import orjson

from bench.processes import Process, Program, installed, resource_manager
from bench.restart import until_quiet
from bench.tables import Rows
from bench.watching import PATIENCE, pending
from bench.writes import NAMESPACE, fill
from pergola import sandbox
from pergola.api.kinds import LEASE
from pergola.api.objects import labels_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.runtime.process.sharding.ring import RING_LABEL, Share
from pergola.testing.crds import install_crds
from tests.support.ports import held_port
from tests.support.sharder import ring, sharder

_RING: Final = Share("bench", "")
_POLL_SECONDS: Final = 1.0
_REQUESTS: Final = re.compile(
    r'^rest_client_requests_total\{.*method="(\w+)".*\} (\S+)', re.MULTILINE
)


class Counted(NamedTuple):
    """The resources that a shard has used so far."""

    reads: int
    writes: int
    cpu: float
    megabytes: float


class Takeover(NamedTuple):
    """The cost of a shard that is killed.

    Attributes:
        moved: The ManagedResources that the others take over.
        assigned: The seconds until they are assigned to others.
        quiet: The seconds until the others have reconciled them.
        used: The reads, writes and CPU seconds of the others, together.
    """

    moved: int
    assigned: float
    quiet: float
    used: Counted


@dataclass(frozen=True)
class Figures:
    """The figures of some shards.

    Attributes:
        seconds: From the first ManagedResource created until all are applied.
        resources: The ManagedResources of each shard.
        shards: The resources that each shard used until then, in the same order.
    """

    seconds: float
    resources: Sequence[int]
    shards: Sequence[Counted]
    takeover: Takeover | None


class _Shard(NamedTuple):
    """A running shard, with the port of its metrics, and the folder with its log."""

    process: Process
    port: int
    folder: Path


async def rows(count: int, objects: int, shards: Sequence[int]) -> Rows:
    """Return the figures for each number of shards, each in a new sandbox."""
    runs = []
    for number in shards:
        runs.append(await _run(count, objects, number))
        print(f"{number} shard(s) done: {runs[-1].seconds:.0f} s", file=sys.stderr)

    def each(name: str, cell: str, pick: str) -> tuple[str, ...]:
        def text(run: Figures) -> str:
            return " / ".join(format(getattr(shard, pick), cell) for shard in run.shards)

        return name, *map(text, runs)

    def writes(run: Figures) -> str:
        return f"{sum(shard.writes for shard in run.shards) / count:.1f}"

    return [
        ("all applied after", *(f"{run.seconds:.0f} s" for run in runs)),
        ("  ManagedResources a second", *(f"{count / run.seconds:.1f}" for run in runs)),
        (
            "ManagedResources of each shard",
            *(" / ".join(f"{number:,}" for number in run.resources) for run in runs),
        ),
        each("writes of each shard", ",", "writes"),
        ("  writes for each ManagedResource", *map(writes, runs)),
        each("reads of each shard, with lists and watches", ",", "reads"),
        each("CPU seconds of each shard", ".1f", "cpu"),
        ("  of all shards", *(f"{sum(s.cpu for s in run.shards):.1f}" for run in runs)),
        each("peak memory of each shard, MB", ".0f", "megabytes"),
        ("  of all shards", *(f"{sum(s.megabytes for s in run.shards):.0f} MB" for run in runs)),
        *_takeovers(runs),
    ]


def _takeovers(runs: Sequence[Figures]) -> Rows:
    def row(name: str, cell: str) -> tuple[str, ...]:
        return name, *(cell.format(run.takeover) if run.takeover else "-" for run in runs)

    return [
        row("killed: ManagedResources of that shard", "{0.moved:,}"),
        row("  assigned to others after", "{0.assigned:.0f} s"),
        row("  reconciled by them after", "{0.quiet:.0f} s"),
        row("  writes of the others", "{0.used.writes:,}"),
        row("  reads of the others", "{0.used.reads:,}"),
        row("  CPU seconds of the others", "{0.used.cpu:.1f}"),
    ]


async def _run(count: int, objects: int, number: int) -> Figures:
    started = await sandbox.start(f"shards-{os.getpid()}", progress=lambda _: None)
    try:
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            client = await stack.enter_async_context(Client.connect(load(started.kubeconfig)))
            await install_crds(client)
            await stack.enter_async_context(sharder(started, client, folder))
            resource = {"group": MANAGED_RESOURCE.group, "resource": "managedresources"}
            await client.create(ring(_RING.ring, NAMESPACE, resource))
            shards = await stack.enter_async_context(_shards(started.kubeconfig, folder, number))
            await _until_leases(client, number)
            seconds = await _applied(client, shards, count, objects)
            assigned = await _assigned(client)
            return Figures(
                seconds,
                [assigned[_name(shard)] for shard in shards],
                [await _counted(shard) for shard in shards],
                await _killed(client, shards, assigned) if number > 1 else None,
            )
    finally:
        await started.stop()


@asynccontextmanager
async def _shards(kubeconfig: Path, folder: Path, number: int) -> AsyncGenerator[list[_Shard]]:
    """Run shards while the block lasts."""
    program, running = installed(), []
    async with AsyncExitStack() as stack:
        for shard in range(number):
            port = stack.enter_context(held_port())
            place = folder / str(shard)
            place.mkdir()
            process = resource_manager(_sharing(program, port), kubeconfig, place)
            running.append(_Shard(stack.enter_context(process), port, place))
        yield running


def _sharing(program: Program, port: int) -> Program:
    server = {"healthProbes": {"port": 0}, "metrics": {"bindAddress": "127.0.0.1", "port": port}}
    election = {"leaderElect": True, "resourceNamespace": "kube-system"}
    sharding = {"controllerRing": _RING.ring}
    settings = {"server": server, "leaderElection": election, "sharding": sharding}
    return program._replace(settings={**settings, "logLevel": "info"})


async def _until_leases(client: Client, number: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while len(await client.list(LEASE, labels=f"{RING_LABEL}={_RING.ring}")) < number:  # noqa: ASYNC110 - a bench may poll
            await asyncio.sleep(_POLL_SECONDS)


async def _applied(client: Client, shards: Sequence[_Shard], count: int, objects: int) -> float:
    """Create ManagedResources; return the seconds until all of them are applied."""
    async with pending(client) as waiting:
        began = time.monotonic()
        await fill(client, count, objects)
        await waiting.emptied(waiting.unapplied, [shard.process for shard in shards])
        return time.monotonic() - began


async def _assigned(client: Client) -> Counter[str]:
    """Return the number of ManagedResources of each shard."""
    found = await client.list(MANAGED_RESOURCE, NAMESPACE)
    return Counter(labels_of(obj)[_RING.shard_label] for obj in found)


def _name(shard: _Shard) -> str:
    """Return the name of a shard, from its log."""
    lines = map(orjson.loads, (shard.folder / "log").read_bytes().splitlines())
    lease = next(line["lease"] for line in lines if line["msg"] == "became shard")
    return str(lease).partition("/")[2]


async def _killed(
    client: Client, shards: Sequence[_Shard], assigned: Mapping[str, int]
) -> Takeover:
    """Kill the last shard, and measure what the others do until they have taken over."""
    *others, victim = shards
    before = [await _counted(shard) for shard in others]
    label = f"{_RING.shard_label}={_name(victim)}"
    victim.process.kill()
    began = time.monotonic()
    async with asyncio.timeout(PATIENCE):
        while await client.list(MANAGED_RESOURCE, NAMESPACE, labels=label):  # noqa: ASYNC110 - a bench may poll
            await asyncio.sleep(_POLL_SECONDS)
    moved = time.monotonic() - began
    quiet_at, _ = await until_quiet([shard.process for shard in others], began + PATIENCE)
    after = [await _counted(shard) for shard in others]
    pairs = [*zip(before, after, strict=True)]
    used = Counted(
        sum(now.reads - then.reads for then, now in pairs),
        sum(now.writes - then.writes for then, now in pairs),
        sum(now.cpu - then.cpu for then, now in pairs),
        0.0,
    )
    return Takeover(assigned[_name(victim)], moved, quiet_at - began, used)


async def _counted(shard: _Shard) -> Counted:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{shard.port}/metrics") as answer,
    ):
        text = await answer.text()
    requests: Counter[str] = Counter()
    for method, value in _REQUESTS.findall(text):
        requests[method] += int(float(value))
    reads = requests.pop("GET", 0)
    process = shard.process
    return Counted(reads, requests.total(), process.cpu, process.peak_megabytes)
