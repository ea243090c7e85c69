"""The resource managers of a Seed and of a Shoot, the original's and Pergola's, by gardenlet.

    python -m bench seeds               # about ten minutes, once all programs are built
    python -m bench seeds --rest 20     # a shorter idle period

One Garden gets two Seeds, one after the other, in clusters of their own: gardenlet deploys the
original's resource managers in the first one and Pergola's in the second one, and a Shoot without
workers in each. Requests are those to the API server of the Seed.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import uvloop

from bench.processes import OWN, cpu_seconds, megabytes, start_in_vain
from bench.tables import show
from pergola.runtime.logging import configure
from pergola.sandbox import binaries
from pergola.sandbox.on_demand import GARDENER_RESOURCE_MANAGER
from tests.support.landscape import SeedCluster, World, living_landscape, processes

PROGRAM: Final = "resource-manager"
HEADINGS: Final = ("figure", "original", "Pergola", "Pergola / original")
_EVERY_SECONDS: Final = 0.5


@dataclass
class Usage:
    """The CPU time and memory of the resource managers of a cluster, including those that ended.

    Attributes:
        cpu: user and system seconds of each process.
        peak_megabytes: the largest resident size of all processes at one time.
    """

    directory: Path
    cpu: dict[int, float] = field(default_factory=dict)
    peak_megabytes: float = 0.0

    def observe(self) -> None:
        """Read the usage of the processes that run now."""
        total = 0.0
        for pid in processes(PROGRAM, self.directory):
            with suppress(OSError):
                self.cpu[pid] = cpu_seconds(pid)
                total += megabytes(pid, "VmRSS")
        self.peak_megabytes = max(self.peak_megabytes, total)

    @property
    def seconds(self) -> float:
        """The CPU seconds of all processes."""
        return sum(self.cpu.values())

    @property
    def starts(self) -> int:
        """How many processes were started."""
        return len(self.cpu)


@dataclass
class Figures:
    """The figures of one of them.

    Attributes:
        start: CPU seconds of one start without work.
    """

    start: float = 0.0
    starts: int = 0
    seed: float = 0.0
    shoot: float = 0.0
    requests: int = 0
    cpu: float = 0.0
    quiet_requests: int = 0
    quiet_cpu: float = 0.0
    megabytes: float = 0.0


@asynccontextmanager
async def watched(usage: Usage) -> AsyncGenerator[None]:
    """Follow the usage of a cluster while the block lasts."""

    async def follow() -> None:
        while True:
            usage.observe()
            await asyncio.sleep(_EVERY_SECONDS)

    task = asyncio.create_task(follow())
    try:
        yield
    finally:
        task.cancel()
        usage.observe()


async def measure(world: World, name: str, rest: float, *, original: bool) -> Figures:
    """Create a Seed and a Shoot, and wait until both are healthy and then at rest."""
    found = Figures()
    async with world.opened_seed(name, original=original) as seed:
        usage, began = Usage(seed.site.directory), time.monotonic()
        async with watched(usage):
            await world.join(seed)
            found.seed, began = time.monotonic() - began, time.monotonic()
            await world.shoot(name, seed)
            found.shoot = time.monotonic() - began
            found.requests, found.cpu, found.starts = _count(seed), usage.seconds, usage.starts
            await asyncio.sleep(rest)
            found.quiet_requests = _count(seed) - found.requests
        found.quiet_cpu = usage.seconds - found.cpu
        found.megabytes = usage.peak_megabytes
    return found


def _count(seed: SeedCluster) -> int:
    return sum(1 for _ in seed.requests())


async def both(rest: float) -> tuple[Figures, Figures]:
    """Measure the original's resource managers, then Pergola's."""
    start_in_vain(OWN)
    with tempfile.TemporaryDirectory(prefix="pergola-bench-") as folder:
        async with living_landscape(f"bench-{os.getpid()}", Path(folder)) as world:
            one = await measure(world, "original", rest, original=True)
            other = await measure(world, "pergola", rest, original=False)
    found = binaries.find((GARDENER_RESOURCE_MANAGER,))[GARDENER_RESOURCE_MANAGER]
    one.start, other.start = start_in_vain((str(found),)), start_in_vain(OWN)
    return one, other


def rows(original: Figures, own: Figures, rest: float) -> list[tuple[str, ...]]:
    """Return the lines of the table."""
    pairs = (
        ("Seed until it is healthy, s", original.seed, own.seed),
        ("Shoot until it is healthy, s", original.shoot, own.shoot),
        ("requests to the Seed until then", original.requests, own.requests),
        ("CPU seconds until then", original.cpu, own.cpu),
        ("  processes started", original.starts, own.starts),
        ("  CPU seconds of a start without work", original.start, own.start),
        (f"requests in {rest:.0f} s at rest", original.quiet_requests, own.quiet_requests),
        (f"CPU seconds in {rest:.0f} s at rest", original.quiet_cpu, own.quiet_cpu),
        ("memory of all processes, MB", original.megabytes, own.megabytes),
    )
    return [
        (title, _text(one), _text(other), f"{other / one:.2f}" if one else "-")
        for title, one, other in pairs
    ]


def _text(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 or figure == int(figure) else f"{figure:.2f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench seeds")
    parser.add_argument("--rest", type=float, default=60.0, help="seconds at rest")
    rest = parser.parse_args().rest
    configure("error", "text")
    show(rows(*uvloop.run(both(rest)), rest), HEADINGS)


if __name__ == "__main__":
    main()
