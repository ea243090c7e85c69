"""A restart of the resource manager with ManagedResources that are applied and healthy.

Nothing changed in between, so it should only read the objects, write nothing, and become idle.
Watches and the initial lists of caches are not counted.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from bench.watching import another_watch
from pergola.kube.client import Client

_READS: Final = ("GET", "LIST", "WATCH")
# The API server and its controllers renew their own Leases.
_OTHERS: Final = ("leases", "events", "endpointslices")
LAST_KIND: Final = "poddisruptionbudgets"
"""The kind that a resource manager applies last, and so watches last."""
_STEP: Final = 0.5
_BUSY: Final = 0.1  # CPU seconds of a step
_QUIET_STEPS: Final = 6
_PATIENCE: Final = 300.0


class Measured(Protocol):
    """A process that is measured from outside."""

    @property
    def cpu(self) -> float:
        """The CPU seconds so far."""
        ...

    @property
    def peak_megabytes(self) -> float:
        """The largest resident size so far."""
        ...

    def check(self) -> None:
        """Fail if the process ended."""
        ...


@dataclass(frozen=True)
class Restart:
    """The figures of one restart."""

    seconds: float
    cpu: float
    requests: int
    writes: int
    peak_megabytes: float

    def rows(self) -> list[tuple[str, str, str]]:
        """Return figure, measured value and target."""
        return [
            ("restart: idle again after", f"{self.seconds:.1f} s", "≤ 12 s for 3,000"),
            ("restart: CPU seconds until then", f"{self.cpu:.2f}", ""),
            ("restart: API requests, all clients", f"{self.requests}", "≤ 150 for 3,000"),
            ("  of which writes", f"{self.writes}", "0"),
            ("restart: peak memory", f"{self.peak_megabytes:.0f} MB", "≤ 180 MB for 3,000"),
        ]


async def counts(client: Client) -> tuple[int, int]:
    """Return how many requests, and how many writes among them, the API server counted."""
    total: Counter[bool] = Counter()
    text = (await client.get_raw("/metrics")).decode()
    for line in re.findall(r"^apiserver_request_total\{.*$", text, flags=re.MULTILINE):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
        if labels.get("resource", "") in ("", *_OTHERS) or labels["verb"] == "WATCH":
            continue
        total[labels["verb"] not in _READS] += int(float(line.rsplit(" ", 1)[1]))
    return total.total(), total[True]


async def measure(
    client: Client, process: Measured, began: float, before: tuple[int, int], watches: int
) -> Restart:
    """Measure from the start of a process until it no longer needs CPU.

    Args:
        began: when it was started.
        before: the counts at that time.
        watches: of `LAST_KIND` while no resource manager runs.
    """
    await another_watch(client, LAST_KIND, watches, process)
    quiet_at, quiet_cpu = await until_quiet([process], began + _PATIENCE)
    requests, writes = await counts(client)
    return Restart(
        seconds=quiet_at - began,
        cpu=quiet_cpu,
        requests=requests - before[0],
        writes=writes - before[1],
        peak_megabytes=process.peak_megabytes,
    )


async def until_quiet(processes: Sequence[Measured], deadline: float) -> tuple[float, float]:
    """Wait until no process needs CPU.

    Args:
        deadline: the time on the monotonic clock at which to stop waiting.

    Returns:
        When that began, and the CPU seconds of all processes until then.
    """
    used = [process.cpu for process in processes]
    quiet, still = (time.monotonic(), sum(used)), 0
    while still < _QUIET_STEPS and time.monotonic() < deadline:
        await asyncio.sleep(_STEP)
        for process in processes:
            process.check()
        before, used = used, [process.cpu for process in processes]
        is_quiet = all(now - then < _BUSY for then, now in zip(before, used, strict=True))
        still, quiet = (still + 1, quiet) if is_quiet else (0, (time.monotonic(), sum(used)))
    return quiet
