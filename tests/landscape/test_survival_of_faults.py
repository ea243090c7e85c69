"""Faults in a landscape: Pergola's processes are killed at random, and API servers freeze."""

import asyncio
import os
import random
import signal
from typing import Final

import pytest

from pergola.api.kinds import SEED, SHOOT
from pergola.api.objects import Key, uid_of
from pergola.cloud.aws import AwsClient
from pergola.sandbox.aws.world import everything
from tests.support.landscape import SeedCluster, World, processes, uids
from tests.support.landscape_faults import killed_at_random
from tests.support.landscape_machines import create_shoot_with_machines, pool

pytestmark = [
    pytest.mark.soak("landscape"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(3600),
]

_KILLS: Final = 50
_MINUTE: Final = 60.0


async def test_processes_that_are_killed_in_every_phase_lose_nothing(
    landscape: World, seed: SeedCluster, chance: random.Random
) -> None:
    async with killed_at_random(landscape, (seed,), chance) as kills:
        key = await landscape.shoot("killed", seed)
        before = await uids(seed.site.client)
        await landscape.perform(SHOOT, key, "rotate-credentials-start")
        await landscape.perform(SEED, Key("", seed.name), "reconcile")
        await landscape.perform(SHOOT, key, "rotate-credentials-complete")
        assert await landscape.lost(seed, before) == set()
        while len(kills) < _KILLS:
            await landscape.perform(SHOOT, key, "reconcile")
        await landscape.delete(SHOOT, key)
    await landscape.healthy(SEED, Key("", seed.name))
    assert seed.refused() == []


async def test_extensions_that_are_killed_keep_the_machines_and_leave_nothing_in_aws(
    landscape_on_aws: World, account: AwsClient, seed: SeedCluster, chance: random.Random
) -> None:
    landscape, before = landscape_on_aws, await everything(account)
    async with killed_at_random(landscape, (seed,), chance) as kills:
        shoot = await create_shoot_with_machines(
            landscape, account, seed, "killed-on-aws", pool("one")
        )
        await shoot.until_nodes_run(3)
        machines, instances = await shoot.machines(), await shoot.instances()
        lasting = await uids(seed.site.client)
        while kills.count("extension") < _KILLS // 2:
            await landscape.perform(SHOOT, shoot.key, "reconcile")
        assert await shoot.instances() == instances
        kept = {name: uid_of(each) for name, each in (await shoot.machines()).items()}
        assert kept == {name: uid_of(each) for name, each in machines.items()}
        assert await landscape.lost(seed, lasting) == set()
        await landscape.delete(SHOOT, shoot.key)
    assert await everything(account) == before
    assert seed.refused() == []


async def test_nothing_is_deleted_while_the_api_server_of_the_garden_is_away(
    landscape: World, seed: SeedCluster, shoot: Key
) -> None:
    before = await uids(seed.site.client)
    [server] = processes("kube-apiserver", landscape.clusters.garden.directory / "garden")
    os.kill(server, signal.SIGSTOP)
    try:
        await asyncio.sleep(_MINUTE)
    finally:
        os.kill(server, signal.SIGCONT)
    await landscape.healthy(SEED, Key("", seed.name))
    await landscape.healthy(SHOOT, shoot)
    assert await landscape.lost(seed, before) == set()
