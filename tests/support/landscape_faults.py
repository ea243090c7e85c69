"""Pergola's processes in a landscape, killed at random."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

from tests.support.landscape import SeedCluster, World, processes

_PROGRAMS: Final = ("resource-manager", "extension")
_PAUSES: Final = (2.0, 10.0)


@asynccontextmanager
async def killed_at_random(
    landscape: World, seeds: tuple[SeedCluster, ...], source: random.Random
) -> AsyncGenerator[list[str]]:
    """Kill Pergola's processes while the block lasts; yield the names of those killed so far."""
    kills: list[str] = []
    task = asyncio.create_task(_kill(landscape, seeds, source, kills))
    try:
        yield kills
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _kill(
    landscape: World, seeds: tuple[SeedCluster, ...], source: random.Random, kills: list[str]
) -> None:
    while True:
        await asyncio.sleep(source.uniform(*_PAUSES))
        kills += kill_one(landscape, seeds, source)


def kill_one(landscape: World, seeds: tuple[SeedCluster, ...], source: random.Random) -> list[str]:
    """Kill one of Pergola's processes; return its name, or nothing if none was running."""
    if victims := own_processes(landscape, seeds):
        pid, name = source.choice(victims)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return [name]
    return []


def own_processes(landscape: World, seeds: tuple[SeedCluster, ...]) -> list[tuple[int, str]]:
    """Return the ids of Pergola's processes, with what each of them is.

    Admission is not among them: without a second replica, requests of users would fail.
    """
    sites = (landscape.clusters.garden, *(seed.site for seed in seeds))
    found = [
        (pid, name)
        for site in sites
        for name in _PROGRAMS
        for pid in {*processes(name, site.directory)} - {*processes("admission", site.directory)}
    ]
    operator = landscape.operator.state()["process"]
    return [*found, *([(operator.pid, "operator")] if operator else [])]
