"""Shoots with Pergola's extensions, which the operator installs from a registry."""

import random
from collections import Counter
from collections.abc import Iterable
from typing import Final

import pytest

from pergola.api.extensions_v1alpha1 import NETWORK
from pergola.api.kinds import CONFIG_MAP, NAMESPACE, SHOOT
from pergola.api.objects import Key, map_at, uid_of
from pergola.cloud.aws import AwsClient
from pergola.extension_api.kinds import BACKUP_ENTRY
from pergola.manifests import manifest
from pergola.sandbox.aws.world import everything
from pergola.sandbox.landscape import create_shoot
from tests.support.landscape import SeedCluster, World
from tests.support.landscape_aws import (
    create_shoot_on_aws,
    move,
)
from tests.support.landscape_faults import killed_at_random

pytestmark = [
    pytest.mark.soak("landscape"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(1800),
]

_MADE: Final = Counter(
    {"KeyPairs": 1, "NatGateways": 1, "Roles": 1, "SecurityGroups": 1, "Subnets": 3, "Vpcs": 1}
)
_MINE: Final = Key("default", "mine")


async def test_the_aws_resources_of_a_shoot_are_made_once_and_removed(
    landscape: World, account: AwsClient, seeds_on_aws: tuple[SeedCluster, SeedCluster]
) -> None:
    seed, _ = seeds_on_aws
    before = await everything(account)
    key = await create_shoot_on_aws(landscape, seed.name, "aws")
    made = await everything(account)
    assert kinds(made.keys() - before.keys()) >= _MADE
    await landscape.perform(SHOOT, key, "reconcile")
    assert await states_of_backups(seed) == ["Succeeded"]
    assert await everything(account) == made
    await landscape.delete(SHOOT, key)
    assert await everything(account) == before
    assert seed.refused() == []


async def test_a_control_plane_moves_to_another_seed_with_all_it_has(
    landscape: World, account: AwsClient, seeds_on_aws: tuple[SeedCluster, SeedCluster]
) -> None:
    source, target = seeds_on_aws
    before = await everything(account)
    key = await create_shoot_on_aws(landscape, source.name, "moved")
    made = await everything(account)
    async with landscape.client_of(key, source) as client:
        mine = await client.create(
            manifest("v1", "ConfigMap", _MINE.name, namespace=_MINE.namespace)
        )
    await move(landscape, key, target)
    assert await everything(account) == made
    async with landscape.client_of(key, target) as client:
        assert uid_of(await client.get(CONFIG_MAP, _MINE)) == uid_of(mine)
    namespace = map_at(await landscape.garden.get(SHOOT, key), "status")["technicalID"]
    assert await source.site.client.find(NAMESPACE, Key("", namespace)) is None
    assert await states_of_backups(source) == []
    assert await states_of_backups(target) == ["Succeeded"]
    await landscape.perform(SHOOT, key, "reconcile")
    assert await everything(account) == made
    await landscape.delete(SHOOT, key)
    assert await everything(account) == before
    assert [*source.refused(), *target.refused()] == []


async def test_extensions_that_are_killed_in_every_phase_make_nothing_twice(
    landscape: World,
    account: AwsClient,
    seeds_on_aws: tuple[SeedCluster, SeedCluster],
    chance: random.Random,
) -> None:
    source, target = seeds_on_aws
    before = await everything(account)
    async with killed_at_random(landscape, seeds_on_aws, chance) as kills:
        key = await create_shoot_on_aws(landscape, source.name, "stricken")
        made = await everything(account)
        assert kinds(made.keys() - before.keys()) >= _MADE
        await move(landscape, key, target)
        await landscape.perform(SHOOT, key, "reconcile")
        assert await everything(account) == made
        await landscape.delete(SHOOT, key)
    assert await everything(account) == before
    assert "extension" in kills
    assert [*source.refused(), *target.refused()] == []


async def test_cilium_makes_the_network_of_a_shoot(landscape: World, seed: SeedCluster) -> None:
    await landscape.install("networking-cilium")
    patch = {
        "metadata": {"name": "cilium"},
        "spec": {"seedName": seed.name, "networking": {"type": "cilium"}},
    }
    key = await create_shoot(landscape.garden, patch, example="shoot-with-workers.yaml")
    await landscape.reconciled(SHOOT, key)
    namespace = map_at(await landscape.garden.get(SHOOT, key), "status")["technicalID"]
    [network] = await seed.site.client.list(NETWORK, namespace)
    assert map_at(network, "status", "lastOperation")["state"] == "Succeeded"
    await landscape.delete(SHOOT, key)
    assert seed.refused() == []


async def states_of_backups(seed: SeedCluster) -> list[str]:
    """Return the states of the last operations of a Seed's BackupEntries."""
    entries = await seed.site.client.list(BACKUP_ENTRY.gvk)
    return [str(map_at(each, "status", "lastOperation").get("state")) for each in entries]


def kinds(things: Iterable[str]) -> Counter[str]:
    """Return how many things of each kind are in an account."""
    return Counter(each.partition("/")[0] for each in things)
