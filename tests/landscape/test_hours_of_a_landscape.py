"""A landscape at work for hours: people edit, Pergola is killed, credentials are rotated.

`make soak HOURS=2` runs it; the first half has kills, and in the second half nothing may grow.
A run of less than an hour shows what grew, but judges nothing: processes are still warming up.
"""

import asyncio
import os
import random
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from bench.tables import save, show
from pergola.api.kinds import SEED
from pergola.api.objects import Key
from pergola.cloud.aws import AwsClient
from pergola.runtime.task_group import TaskGroup
from tests.support.landscape import SeedCluster, World, uids
from tests.support.landscape_faults import own_processes
from tests.support.landscape_machines import ZONES, create_shoot_with_machines, pool
from tests.support.landscape_work import Work
from tests.support.process_samples import HELD, Growth, Samples, growth
from tests.support.unexpected_lines import warnings

_HOURS: Final = float(os.environ.get("PERGOLA_SOAK_HOURS", "0.5"))
_SAVE: Final = os.environ.get("PERGOLA_SOAK_SAVE")
_PAUSE: Final = 20.0
_MOST: Final = {"memory": 1.0, "descriptors": 2.0, "tasks": 2.0, "objects": 5.0, "series": 5.0}
"""By how much a process may grow in an hour, in both halves of the time in which it is watched."""
_CAUSES: Final = 40
"""The most metric series that are named as the cause of a growth."""
_JUDGED: Final = 1.0
"""The fewest hours after which growth is judged."""

pytestmark = [
    pytest.mark.soak("hours"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(_HOURS * 3600 + 3600),
]


async def test_no_process_grows_while_a_landscape_works(
    landscape_on_aws: World, account: AwsClient, seed: SeedCluster, chance: random.Random
) -> None:
    landscape, half = landscape_on_aws, _HOURS * 1800
    small = pool("one", minimum=1, maximum=1, zones=[ZONES[0]])
    with_machines = await create_shoot_with_machines(
        landscape, account, seed, "steady-on-aws", small
    )
    shoots = [await landscape.shoot(name, seed) for name in ("steady", "rotated")]
    before, machines = await uids(seed.site.client), await with_machines.machines()
    work = Work(landscape, seed, (shoots[0], with_machines.key, shoots[1]), chance)
    await work.go_on(time.monotonic() + half, with_kills=True)
    samples = Samples()
    async with _taken(samples, landscape, seed):
        await work.go_on(time.monotonic() + half, with_kills=False)

    show([(name, str(count)) for name, count in sorted(work.done.items())], ("what", "times"))
    excess = _excess(samples)
    if _SAVE:
        save(Path(_SAVE), 1)
    show([(each,) for each in excess], ("what grew too much",))
    await landscape.healthy(SEED, Key("", seed.name))
    assert before.items() <= (await uids(seed.site.client)).items()
    assert (await with_machines.machines()).keys() == machines.keys()
    assert seed.refused() == []
    assert excess == [] or _HOURS < _JUDGED
    assert warnings(samples.lines) == []


@asynccontextmanager
async def _taken(samples: Samples, landscape: World, seed: SeedCluster) -> AsyncIterator[None]:
    """Take samples of Pergola's processes while the block lasts."""

    async def take() -> None:
        while True:
            await samples.take(_named(landscape, seed))
            await asyncio.sleep(_PAUSE)

    async with TaskGroup() as group:
        task = group.create_task(take())
        yield
        task.cancel()
    await samples.take(_named(landscape, seed))


def _named(landscape: World, seed: SeedCluster) -> Iterator[tuple[int, str]]:
    """Yield Pergola's processes, named by cluster, namespace and workload."""
    for pid, program in own_processes(landscape, (seed,)):
        with suppress(OSError):
            pod = Path(f"/proc/{pid}/fd/1").readlink().parent
            is_of_garden = pod.is_relative_to(landscape.clusters.garden.directory)
            workload = f"{pod.parent.name}/{re.sub(r'-[0-9a-f]{6,10}$', '', pod.name)}"
            name = f"{'Garden' if is_of_garden else 'Seed'}: {workload}"
            yield pid, program if program == "operator" else name


def _excess(samples: Samples) -> list[str]:
    """Show how all processes grew that lived as long as the samples; return what grew too much."""
    rows, excess = [], []
    longest = max(len(each) for each in samples.of_process.values())
    for pid, taken in samples.of_process.items():
        if len(taken) < longest - 1:
            continue  # that of a Shoot which was deleted, or whose credentials were rotated
        name = samples.names[pid]
        found = {each: growth(taken, each) for each in HELD}
        rows.append((name, *(_shown(each) for each in found.values())))
        excess += [
            f"{name}: {each} grows by {grown.lasting:.1f} an hour, from {grown.before:.1f}: "
            + (", ".join(samples.causes(pid, each)[:_CAUSES]) or "no series says why")
            for each, grown in found.items()
            if grown and grown.lasting > _MOST[each]
        ]
    show(rows, ("process", *(f"{each}, and growth an hour" for each in HELD)))
    return excess


def _shown(found: Growth | None) -> str:
    return f"{found.before:.0f} {found.each_hour:+.1f}" if found else "-"
