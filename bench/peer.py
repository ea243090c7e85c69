"""The resource manager compared with the original: the same load, in turn, on equal sandboxes.

    make bench ARGS=peer                       # 300 ManagedResources, one run each
    make bench ARGS="peer -n 100 --quiet 20"   # a quick run
    make bench ARGS="peer --runs 3"            # the median of three runs each

The original is built once from its Go module, which takes some minutes. Both have their defaults,
except that the original's limit of requests per second is lifted, which would slow it down. The
original repairs an edited object at its next sync, within a minute.
"""

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from bench.managed_resources import Figures, run
from bench.processes import Program, installed
from bench.tables import show
from bench.writes import bare
from pergola.pki import Authority
from pergola.sandbox import binaries
from pergola.sandbox.on_demand import GARDENER_RESOURCE_MANAGER, ORIGINAL_RESOURCE_MANAGER
from tests.support.ports import held_port

UNLIMITED: Final = {"qps": 10_000, "burst": 20_000}


class Row(NamedTuple):
    """A figure of both, and its format."""

    title: str
    of: Callable[[Figures], float]
    unit: str
    digits: int = 1

    def text(self, value: float) -> str:
        """Return a value as text."""
        return f"{value:,.{self.digits}f}{self.unit}"


ROWS: Final = (
    Row("all ResourcesApplied", lambda it: it.applied, " s"),
    Row("all healthy and not progressing", lambda it: it.ready, " s"),
    Row("API requests until then, all clients", lambda it: it.requests, "", 0),
    Row("  of which ManagedResource status writes", lambda it: it.status_writes, "", 0),
    Row("CPU seconds of the process until then", lambda it: it.cpu_ready, "", 2),
    Row("idle period: requests", lambda it: it.quiet_requests, "", 0),
    Row("idle period: CPU seconds", lambda it: it.quiet_cpu, "", 2),
    Row("repair of an edited object, median", lambda it: statistics.median(it.repairs), " s", 3),
    Row("peak memory of the process", lambda it: it.peak_megabytes, " MB", 0),
)


@contextmanager
def original() -> Iterator[Program]:
    """Yield the original; it always serves webhooks, so it gets a certificate and a port."""
    name = GARDENER_RESOURCE_MANAGER
    program = binaries.find((name,), lambda line: print(line, flush=True))[name]
    now, day = datetime.now(UTC), timedelta(days=1)
    pair = Authority.create("bench", now, day).issue_server("bench", ("localhost",), now, day)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        (Path(folder) / "tls.crt").write_bytes(pair.public)
        (Path(folder) / "tls.key").write_bytes(pair.private)
        webhooks, health, metrics = (stack.enter_context(held_port()) for _ in range(3))
        server = {
            "webhooks": {"port": webhooks, "tls": {"serverCertDir": folder}},
            "healthProbes": {"port": health},
            "metrics": {"port": metrics},
        }
        yield Program((str(program),), {"server": server}, UNLIMITED)


def both(runs: int, measured: Callable[[Program], Figures]) -> tuple[list[Figures], list[Figures]]:
    """Return the figures of ours and of the original, measured alternately."""
    ours: list[Figures] = []
    theirs: list[Figures] = []
    with original() as peer:
        for number in range(runs):
            turns = [(installed(), ours), (peer, theirs)]
            for program, found in turns if number % 2 == 0 else turns[::-1]:
                found.append(measured(program))
    return ours, theirs


def compared(ours: list[Figures], theirs: list[Figures]) -> Iterator[tuple[str, ...]]:
    """Yield each figure: ours, the original's, and the ratio of the two."""
    for row in ROWS:
        mine, other = (statistics.median(map(row.of, found)) for found in (ours, theirs))
        ratio = f"{mine / other:.2f}" if other else "-"
        yield row.title, row.text(mine), row.text(other), ratio


def main() -> None:
    """Parse the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("-n", "--count", type=int, default=300)
    parser.add_argument("--runs", type=int, default=1, help="runs of each; medians are printed")
    parser.add_argument("--quiet", type=float, default=65.0, help="seconds of the idle period")
    parser.add_argument("--edits", type=int, default=3, help="objects to edit and have repaired")
    given = parser.parse_args()

    def measured(program: Program) -> Figures:
        return asyncio.run(run(program, given.count, quiet=given.quiet, edits=given.edits, until=0))

    ours, theirs = both(given.runs, measured)
    seconds = asyncio.run(bare(given.count)).seconds
    version = ORIGINAL_RESOURCE_MANAGER.version
    print(
        f"{given.count} ManagedResources of 10 objects; creation by a bare client: {seconds:.1f} s"
    )
    show([*compared(ours, theirs)], ("figure", "Pergola", f"Gardener {version}", "ratio"))
