"""Faults of all kinds: nothing is lost or wrongly deleted, and everything converges."""

import asyncio
import random

import pytest

from pergola.api.kinds import CONFIG_MAP, LEASE
from pergola.api.objects import JsonObject, Key, name_of
from pergola.kube.errors import KubeError
from pergola.sandbox import Sandbox
from pergola.testing.waiting import PATIENCE
from pergola.testing.world import World, is_ready
from tests.support.instances import Instances

COUNT = 50
BYSTANDER = "bystander"


async def fill(world: World, count: int = COUNT) -> None:
    """Create ManagedResources with two objects each, and an unmanaged object."""
    await world.client.create(world.config_map(BYSTANDER, untouched="yes"))
    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(world.create(f"mr-{number}", *content(world, number, 0)))


def content(world: World, number: int, revision: int) -> list[JsonObject]:
    """Return the objects at a revision; one name changes with each revision."""
    return [
        world.config_map(f"stays-{number}", revision=str(revision)),
        world.config_map(f"moves-{number}-{revision}", revision=str(revision)),
    ]


async def converged(world: World, revision: int, count: int = COUNT) -> None:
    """Wait until everything is applied, and check the objects themselves."""
    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(world.until(f"mr-{number}", is_ready))

    def desired() -> dict[str, dict[str, str]]:
        objects = [o for n in range(count) for o in content(world, n, revision)]
        return {name_of(o): o["data"] for o in objects} | {BYSTANDER: {"untouched": "yes"}}

    async with asyncio.timeout(PATIENCE):
        while True:
            found = {
                name_of(o): o.get("data") or {}
                for o in await world.client.list(CONFIG_MAP, world.namespace)
                if name_of(o) != "kube-root-ca.crt"
            }
            if found == desired():
                return


async def change_all(world: World, revision: int, count: int = COUNT) -> None:
    """Write a new revision of every Secret at once; retry while the server is disturbed."""

    async def one(number: int) -> None:
        while True:
            try:
                await world.put_secret(f"mr-{number}", *content(world, number, revision))
            except KubeError:
                await asyncio.sleep(0.2)
            else:
                return

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(one(number))


@pytest.mark.soak("chaos")
async def test_kills_at_random_moments_during_changes_lose_nothing(
    world: World, instances: Instances, chance: random.Random
) -> None:
    await fill(world)
    for revision in range(1, 5):
        instance = await instances.start()
        changes = asyncio.create_task(change_all(world, revision))
        await asyncio.sleep(chance.uniform(0.8, 2.5))  # the moment of the kill is the test
        await instance.kill()
        await changes
    await instances.start()
    await converged(world, 4)


async def test_an_api_server_restart_under_load_loses_nothing(
    world: World, instances: Instances, private_sandbox: Sandbox
) -> None:
    await fill(world)
    await instances.start()
    await world.until("mr-0", is_ready)
    changes = asyncio.create_task(change_all(world, 1))
    await private_sandbox.restart_apiserver()
    await changes
    await converged(world, 1)


@pytest.mark.soak("chaos")
async def test_etcd_may_freeze_for_twenty_seconds(
    world: World, instances: Instances, private_sandbox: Sandbox
) -> None:
    await fill(world)
    instance = await instances.start()
    await converged(world, 0)
    await private_sandbox.pause("etcd")
    changes = asyncio.create_task(change_all(world, 1))
    await asyncio.sleep(20)
    await private_sandbox.resume("etcd")
    await changes
    await converged(world, 1)
    assert instance.process.returncode is None


async def test_when_the_leader_is_killed_the_other_replica_takes_over(
    world: World, instances: Instances
) -> None:
    await fill(world)
    first = await instances.start(elect=True, name="first")
    await converged(world, 0)
    second = await instances.start(elect=True, name="second")
    key = Key("kube-system", "gardener-resource-manager")
    holder = (await world.client.get(LEASE, key))["spec"]["holderIdentity"]
    await first.kill()
    await change_all(world, 1)
    await converged(world, 1)
    assert (await world.client.get(LEASE, key))["spec"]["holderIdentity"] != holder
    assert second.process.returncode is None


@pytest.mark.soak("chaos")
async def test_losing_the_lease_ends_the_process_with_an_error(
    world: World, instances: Instances
) -> None:
    await fill(world, 1)
    instance = await instances.start(elect=True)
    await converged(world, 0, 1)
    key = Key("kube-system", "gardener-resource-manager")
    thief = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 3600}}
    await world.client.patch(LEASE, key, thief)
    async with asyncio.timeout(PATIENCE):
        assert await instance.process.wait() != 0


async def test_a_graceful_shutdown_releases_the_lease(world: World, instances: Instances) -> None:
    await fill(world, 1)
    instance = await instances.start(elect=True)
    await converged(world, 0, 1)
    instance.process.terminate()
    async with asyncio.timeout(PATIENCE):
        assert await instance.process.wait() == 0
    lease = await world.client.get(LEASE, Key("kube-system", "gardener-resource-manager"))
    assert not lease["spec"].get("holderIdentity")
