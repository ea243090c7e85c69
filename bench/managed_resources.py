"""The resource manager under load: figures and their targets (design §4).

    python -m bench managed-resources                  # 300 ManagedResources, the table
    python -m bench managed-resources --scale          # 100, 300, 1,000 and 3,000
    python -m bench managed-resources -n 50 --quiet 5  # a quick run

Each run starts a new sandbox, fills it, starts `pergola resource-manager` as a process and measures
from outside: requests by the API server's counters, CPU and memory by /proc.

Durations depend on the machine and its other load. The first lines therefore show how long a client
takes to send the same writes, and a bare client to create the same objects, in the same run.
"""

import argparse
import asyncio
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench import restart
from bench.processes import Process, Program, installed, resource_manager
from bench.tables import show
from bench.watching import pending, watches
from bench.writes import NAMESPACE, NO_EFFORT, Effort, bare, fill, opened, same_writes
from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.kube.watch import watch
from pergola.testing.crds import install_crds


@dataclass
class Figures:
    """The figures of one run; times in seconds."""

    count: int
    bare: Effort = NO_EFFORT
    same: Effort = NO_EFFORT
    applied: float = 0.0
    ready: float = 0.0
    requests: int = 0
    status_writes: int = 0
    cpu_applied: float = 0.0
    cpu_ready: float = 0.0
    cpu_120: float = 0.0
    peak_megabytes: float = 0.0
    quiet_seconds: float = 0.0
    quiet_requests: int = 0
    quiet_cpu: float = 0.0
    repairs: list[float] = field(default_factory=list)
    restarted: restart.Restart | None = None

    def rows(self) -> list[tuple[str, str, str]]:
        """Return figure, measured value and target."""
        p99 = statistics.quantiles(self.repairs, n=100)[98] if len(self.repairs) > 1 else 0.0
        each = self.status_writes / self.count

        def relative(effort: Effort) -> str:
            return f"{self.applied / effort.seconds:.2f}" if effort.seconds else "-"

        return [
            ("a client that sends the same writes", f"{self.same.seconds:.1f} s", ""),
            ("  CPU seconds of that client", f"{self.same.cpu:.2f}", ""),
            ("a bare client that creates the objects", f"{self.bare.seconds:.1f} s", ""),
            ("  CPU seconds of that client", f"{self.bare.cpu:.2f}", ""),
            ("all `ResourcesApplied`", f"{self.applied:.1f} s", ""),
            ("  relative to the same writes", relative(self.same), "≤ 1.15"),
            ("  relative to the bare client", relative(self.bare), ""),
            ("all healthy and not progressing", f"{self.ready:.1f} s", ""),
            ("API requests until then, all clients", f"{self.requests:,}", "≤ 8,500"),
            ("  status writes for each ManagedResource", f"{each:.2f}", "≤ 2"),
            ("CPU seconds of the process at applied", f"{self.cpu_applied:.2f}", "≤ 3.5"),
            ("CPU seconds of the process at 120 s", f"{self.cpu_120:.2f}", ""),
            ("peak memory of the process", f"{self.peak_megabytes:.0f} MB", "≤ 75 MB"),
            (
                f"idle for {self.quiet_seconds:.0f} s: requests",
                f"{self.quiet_requests}",
                "≤ 30",
            ),
            (
                f"idle for {self.quiet_seconds:.0f} s: CPU seconds",
                f"{self.quiet_cpu:.2f}",
                "≤ 0.4",
            ),
            (f"repair of an edited object, p99 of {len(self.repairs)}", f"{p99:.3f} s", "≤ 0.5 s"),
            *(self.restarted.rows() if self.restarted else ()),
        ]


async def requests(client: Client) -> tuple[int, int]:
    """Return the requests that the API server counted, and the status writes of ManagedResources.

    They include the server's own and those of its controllers, as the reference's count does;
    watches count when they end, and reads of /metrics do not count.
    """
    total = status_writes = 0
    text = (await client.get_raw("/metrics")).decode()
    for line in re.findall(r"^apiserver_request_total\{.*$", text, flags=re.MULTILINE):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
        value = int(float(line.rsplit(" ", 1)[1]))
        if labels.get("resource", "") == "" or labels.get("verb") == "WATCH":
            continue
        total += value
        if labels["resource"] == "managedresources" and labels.get("subresource") == "status":
            status_writes += value
    return total, status_writes


async def run(program: Program, count: int, *, quiet: float, edits: int, until: float) -> Figures:
    """Measure one run of a program with `count` ManagedResources."""
    figures = Figures(count)
    async with opened("bench") as (started, client):
        await install_crds(client)
        await fill(client, count)
        with tempfile.TemporaryDirectory() as folder:
            before, _ = await requests(client)
            idle = await watches(client, restart.LAST_KIND)
            began = time.monotonic()
            with resource_manager(program, started.kubeconfig, Path(folder)) as process:
                await measure(client, process, figures, began, before)
                await wait_until(began + until, process)
                figures.cpu_120 = process.cpu
                if edits:
                    figures.repairs = await repairs(client, count, edits)
                    await asyncio.sleep(2)
                await rest(client, process, figures, quiet)
                figures.peak_megabytes = process.peak_megabytes
            counted = await restart.counts(client)
            began = time.monotonic()
            with resource_manager(program, started.kubeconfig, Path(folder)) as process:
                figures.restarted = await restart.measure(client, process, began, counted, idle)
    return figures


async def measure(
    client: Client, process: Process, figures: Figures, began: float, before: int
) -> None:
    """Measure from the start of the process until everything is applied, and until it is ready."""
    async with pending(client) as waiting:
        await waiting.emptied(waiting.unapplied, [process])
        figures.applied, figures.cpu_applied = time.monotonic() - began, process.cpu
        await waiting.emptied(waiting.unready, [process])
        figures.ready, figures.cpu_ready = time.monotonic() - began, process.cpu
        total, figures.status_writes = await requests(client)
        figures.requests = total - before


async def wait_until(moment: float, process: Process) -> None:
    """Sleep until a time on the monotonic clock, as the reference was measured."""
    await asyncio.sleep(max(0.0, moment - time.monotonic()))
    process.check()


async def rest(client: Client, process: Process, figures: Figures, seconds: float) -> None:
    """Count the requests of an idle period, without the two readings."""
    before, cpu = (await requests(client))[0], process.cpu
    await asyncio.sleep(seconds)
    figures.quiet_seconds = seconds
    figures.quiet_cpu = process.cpu - cpu
    figures.quiet_requests = (await requests(client))[0] - before


async def repairs(client: Client, count: int, edits: int) -> list[float]:
    """Edit ConfigMaps one after another; return the seconds until each is repaired."""
    resource = await client.resource(CONFIG_MAP)
    seconds = []
    for number in range(edits):
        key = Key(NAMESPACE, f"app-{number % count:04}-{number % 3}")
        desired = (await client.get(CONFIG_MAP, key))["data"]
        edited = await client.patch(CONFIG_MAP, key, {"data": {"key": "edited by hand"}})
        began = time.monotonic()
        events = watch(
            client,
            resource,
            NAMESPACE,
            fields=f"metadata.name={key.name}",
            resource_version=edited["metadata"]["resourceVersion"],
            timeout_seconds=60,
        )
        async for event in events:
            if event.type == "MODIFIED" and event.object["data"] == desired:
                break
        await events.aclose()
        seconds.append(time.monotonic() - began)
    return seconds


def scale(runner: Callable[[int], Figures]) -> None:
    """Print the growth of cost with the number of ManagedResources."""
    rows: list[tuple[str, ...]] = []
    for count in (100, 300, 1000, 3000):
        figures = runner(count)
        rows.append(
            (
                f"{count:,}",
                f"{figures.applied:.1f} s",
                f"{figures.ready:.1f} s",
                f"{figures.requests / count:.1f}",
                f"{figures.cpu_ready / count * 1000:.1f} ms",
                f"{figures.peak_megabytes:.0f} MB",
                *_restart_cells(figures.restarted),
            )
        )
        print(f"{count:,} done", file=sys.stderr)
    heads = ("ManagedResources", "applied", "ready", "requests each", "CPU each", "peak memory")
    again = ("restart", "restart: requests", "restart: writes", "restart: peak memory")
    show(rows, (*heads, *again))


def _restart_cells(figures: restart.Restart | None) -> tuple[str, ...]:
    if figures is None:
        return ("", "", "", "")
    return (
        f"{figures.seconds:.1f} s",
        f"{figures.requests:,}",
        f"{figures.writes:,}",
        f"{figures.peak_megabytes:.0f} MB",
    )


def main() -> None:
    """Parse the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("-n", "--count", type=int, default=300)
    parser.add_argument("--scale", action="store_true")
    parser.add_argument("--quiet", type=float, default=65.0, help="seconds of the idle period")
    parser.add_argument("--edits", type=int, default=200, help="objects to edit and have repaired")
    parser.add_argument(
        "--until", type=float, default=120.0, help="seconds until the second reading of CPU"
    )
    arguments = parser.parse_args()
    if arguments.scale:
        scale(lambda count: asyncio.run(run(installed(), count, quiet=1, edits=0, until=0)))
        return
    figures = asyncio.run(
        run(
            installed(),
            arguments.count,
            quiet=arguments.quiet,
            edits=arguments.edits,
            until=arguments.until,
        )
    )
    figures.bare = asyncio.run(bare(arguments.count))
    figures.same = asyncio.run(same_writes(arguments.count))
    print(f"{figures.count} ManagedResources of 10 objects")
    show([tuple(row) for row in figures.rows()], ("figure", "measured", "target"))
