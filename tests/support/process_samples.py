"""Samples of running processes: memory, descriptors, metrics and log lines."""

import asyncio
import re
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address
from itertools import combinations
from pathlib import Path
from typing import Final

import aiohttp

from bench.processes import megabytes

HELD: Final = ("memory", "descriptors", "tasks", "objects", "series")
"""The figures of a sample; memory is in MB."""
_FEWEST: Final = 8
"""The fewest samples that show whether a process grows."""
_LISTENING: Final = "0A"
_LOOPBACK: Final = int(IPv4Address("127.0.0.1"))
_TIMEOUT: Final = aiohttp.ClientTimeout(total=10)
_SUMS: Final = {"tasks": "pergola_tasks", "objects": "pergola_cached_objects"}
_SERIES: Final = re.compile(r"^(\w+(?:\{.*\})?) (\S+)$", re.MULTILINE)
_SAMPLE: Final = re.compile(r"^(\w+)(?:\{.*\})? (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Sample:
    """The figures of a process at one moment.

    Attributes:
        second: of the monotonic clock.
        held: by the names in `HELD`; without metrics, if the process serves none.
    """

    second: float
    held: Mapping[str, float]


class Samples:
    """The samples of several processes by their ids.

    Attributes:
        lines: of their logs, with the names of the files, from the first sample of each on. They
            are read with each sample, because a log is deleted with its pod.
    """

    def __init__(self) -> None:
        self.of_process: dict[int, list[Sample]] = defaultdict(list)
        self.names: dict[int, str] = {}
        self.lines: list[tuple[str, bytes]] = []
        self._logs: dict[Path, int] = {}
        self._metrics: dict[int, tuple[str, str]] = {}
        self._urls: dict[int, str] = {}

    async def take(self, processes: Iterable[tuple[int, str]]) -> None:
        """Take a sample of each process; those that end meanwhile are left out."""
        async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
            for pid, name in processes:
                with suppress(OSError, aiohttp.ClientError):
                    held = await self._held(session, pid)
                    self.of_process[pid].append(Sample(time.monotonic(), held))
                    self.names[pid] = name
                    self._read_log(Path(f"/proc/{pid}/fd/1"))

    def _read_log(self, output: Path) -> None:
        """Read the lines that a process has completed since its last sample."""
        log = output.readlink()
        position = self._logs.setdefault(log, log.stat().st_size)
        with log.open("rb") as file:
            file.seek(position)
            *lines, rest = file.read().split(b"\n")
            self._logs[log] = file.tell() - len(rest)
        self.lines += [(log.name, line) for line in lines]

    async def _held(self, session: aiohttp.ClientSession, pid: int) -> dict[str, float]:
        found = _held_by_kernel(pid)
        # A process that starts does not serve its metrics yet.
        if pid not in self._urls and (url := await _metrics_of(session, pid)):
            self._urls[pid] = url
        if pid not in self._urls:
            return found
        metrics = await _text(session, self._urls[pid])
        first, _ = self._metrics.setdefault(pid, (metrics, metrics))
        self._metrics[pid] = first, metrics
        return {**found, **held_by(metrics)}

    def causes(self, pid: int, name: str) -> list[str]:
        """Return the metric series that explain why a process holds more of something."""
        return grown(*self._metrics.get(pid, ("", "")), name)


def _held_by_kernel(pid: int) -> dict[str, float]:
    descriptors = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    return {"memory": megabytes(pid, "RssAnon"), "descriptors": float(descriptors)}


def held_by(metrics: str) -> dict[str, float]:
    """Return what the text of a process's metrics says that it holds."""
    samples = _SAMPLE.findall(metrics)
    sums = {
        name: sum(float(value) for metric, value in samples if metric == family)
        for name, family in _SUMS.items()
    }
    return {**sums, "series": float(len(samples))}


def grown(before: str, after: str, name: str) -> list[str]:
    """Return the series that make up a growth: new ones, or those with a higher value.

    Args:
        before: the text of a process's first metrics.
        after: that of its last ones.
        name: one of `HELD`; the kernel's figures are made up of nothing.
    """
    old, new = (dict(_SERIES.findall(metrics)) for metrics in (before, after))
    if name == "series":
        return sorted(new.keys() - old.keys())
    family = _SUMS.get(name)
    return [
        f"{series} from {old.get(series, '0')} to {value}"
        for series, value in sorted(new.items())
        if family and series.partition("{")[0] == family
        if float(value) > float(old.get(series, "0"))
    ]


@dataclass(frozen=True)
class Growth:
    """How much more of something a process holds.

    Attributes:
        before: the median of the first samples.
        each_hour: by the median slope between all samples, so that peaks do not count.
        lasting: the smallest of this slope and those of both halves of the time. What grows once
            does not last: caches that warm up, or a metric series for the first conflict.
    """

    before: float
    each_hour: float
    lasting: float


def growth(samples: Sequence[Sample], name: str) -> Growth | None:
    """Return how much more a process holds each hour; None if there are too few samples."""
    points = [(each.second, each.held[name]) for each in samples if name in each.held]
    if len(points) < _FEWEST:
        return None
    middle = len(points) // 2
    slopes = [_slope(part) for part in (points, points[:middle], points[middle:])]
    first = statistics.median(value for _, value in points[:_FEWEST])
    return Growth(first, slopes[0], min(slopes))


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the median slope between points, for an hour."""
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for earlier, later in combinations(points, 2)
    ]
    return statistics.median(slopes) * 3600


async def _metrics_of(session: aiohttp.ClientSession, pid: int) -> str | None:
    """Return where a process serves metrics, or None."""
    for address, port in _listening(pid):
        url = f"http://{address}:{port}/metrics"
        with suppress(aiohttp.ClientError, asyncio.TimeoutError, UnicodeDecodeError):
            if "pergola_tasks" in await _text(session, url):
                return url
    return None


async def _text(session: aiohttp.ClientSession, url: str) -> str:
    async with session.get(url) as answer:
        return await answer.text()


def _listening(pid: int) -> Iterator[tuple[str, int]]:
    """Yield the IPv4 addresses and ports on which a process listens."""
    sockets = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            sockets.add(str(descriptor.readlink()))
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == _LISTENING and f"socket:[{fields[9]}]" in sockets:
            address, port = fields[1].split(":")
            number = int.from_bytes(bytes.fromhex(address), sys.byteorder)
            yield str(IPv4Address(number or _LOOPBACK)), int(port, 16)
