"""The life of a Shoot's machines in AWS, by the real gardenlet and machine-controller-manager."""

from collections.abc import AsyncIterator, Mapping

import pytest
import pytest_asyncio

from pergola.api.kinds import SHOOT
from pergola.api.objects import JsonObject, uid_of
from pergola.cloud.aws import AwsClient
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import everything
from tests.support.landscape import SeedCluster, World
from tests.support.landscape_machines import (
    ZONES,
    ShootOnAws,
    create_shoot_with_machines,
    parts_of,
    pool,
    zones_of,
)

pytestmark = [
    pytest.mark.soak("landscape"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(1800),
]

POOLS = (pool("one"), pool("two"))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shoot_on_aws(
    landscape: World, account: AwsClient, seeds_on_aws: tuple[SeedCluster, SeedCluster]
) -> AsyncIterator[ShootOnAws]:
    """Yield a Shoot with two pools in three zones; afterwards, nothing of it is in the account."""
    seed, _ = seeds_on_aws
    before = await everything(account)
    shoot = await create_shoot_with_machines(landscape, account, seed, "machines", *POOLS)
    yield shoot
    instances = await shoot.instances()
    await landscape.delete(SHOOT, shoot.key)
    assert await everything(account) == before
    assert await parts_of(account, instances) == []


async def test_two_pools_in_three_zones_have_nodes_that_run_pods(shoot_on_aws: ShootOnAws) -> None:
    await shoot_on_aws.until_nodes_run(6)
    assert zones_of(await shoot_on_aws.instances()) == sorted(ZONES * 2)


async def test_a_pool_is_added_scaled_and_removed(shoot_on_aws: ShootOnAws) -> None:
    kept = await shoot_on_aws.instances()
    for count in (1, 2):
        more = pool("more", minimum=count, maximum=count, zones=[ZONES[0]])
        await shoot_on_aws.change_pools(*POOLS, more)
        await shoot_on_aws.until_nodes_run(6 + count)
        assert ids(kept) < ids(await shoot_on_aws.instances())
    await shoot_on_aws.change_pools(*POOLS)
    await shoot_on_aws.until_nodes_run(6)
    assert ids(await shoot_on_aws.instances()) == ids(kept)


async def test_another_image_replaces_the_machines_of_one_pool_once(
    shoot_on_aws: ShootOnAws,
) -> None:
    kept = await shoot_on_aws.instances()
    await shoot_on_aws.change_pools(*POOLS, rolled := pool("rolled"))
    old = ids(await shoot_on_aws.instances()) - ids(kept)
    rolled["machine"]["image"]["version"] = "1.0.1"
    await shoot_on_aws.change_pools(*POOLS, rolled)
    found = await shoot_on_aws.instances()
    new = {name: each for name, each in found.items() if each["InstanceId"] not in ids(kept)}
    assert ids(kept) < ids(found)
    assert zones_of(new) == sorted(ZONES)
    assert {each["ImageId"] for each in new.values()} == {"ami-0123456789abcdef1"}
    assert old.isdisjoint(ids(new))
    await shoot_on_aws.until_nodes_run(9)
    await shoot_on_aws.landscape.perform(SHOOT, shoot_on_aws.key, "reconcile")
    assert ids(await shoot_on_aws.instances()) == ids(found)
    await shoot_on_aws.change_pools(*POOLS)


async def test_other_keys_of_the_account_replace_no_machine(shoot_on_aws: ShootOnAws) -> None:
    kept = await shoot_on_aws.instances()
    keys = {
        "accessKeyID": "AKIAI44QH8DHBEXAMPLE",
        "secretAccessKey": "je7MtGbClwBF/2Zp9Utk/h3yCo8nvbEXAMPLEKEY",
    }
    await shoot_on_aws.change_keys(keys)
    assert ids(await shoot_on_aws.instances()) == ids(kept)
    assert await shoot_on_aws.keys_of_machines() == keys


async def test_all_credentials_are_rotated_with_new_machines(shoot_on_aws: ShootOnAws) -> None:
    old = await shoot_on_aws.instances()
    await shoot_on_aws.landscape.perform(SHOOT, shoot_on_aws.key, "rotate-credentials-start")
    await shoot_on_aws.until_nodes_run(6)
    new = await shoot_on_aws.instances()
    assert ids(old).isdisjoint(ids(new))
    assert zones_of(new) == sorted(ZONES * 2)
    await shoot_on_aws.landscape.perform(SHOOT, shoot_on_aws.key, "rotate-credentials-complete")
    await shoot_on_aws.until_nodes_run(6)
    assert ids(await shoot_on_aws.instances()) == ids(new)


async def test_it_sleeps_is_changed_and_wakes(shoot_on_aws: ShootOnAws) -> None:
    await shoot_on_aws.change({"hibernation": {"enabled": True}})
    assert await shoot_on_aws.instances() == {}
    more = pool("asleep", minimum=1, maximum=1, zones=[ZONES[1]])
    await shoot_on_aws.change_pools(*POOLS, more)
    assert await shoot_on_aws.instances() == {}
    await shoot_on_aws.change({"hibernation": {"enabled": False}})
    await shoot_on_aws.until_nodes_run(7)
    await shoot_on_aws.change_pools(*POOLS)
    await shoot_on_aws.until_nodes_run(6)


async def test_its_machines_stay_when_its_control_plane_moves(
    shoot_on_aws: ShootOnAws, seeds_on_aws: tuple[SeedCluster, SeedCluster]
) -> None:
    one, two = seeds_on_aws
    machines, instances = await shoot_on_aws.machines(), await shoot_on_aws.instances()
    nodes = await shoot_on_aws.until_nodes_run(6)
    await shoot_on_aws.move(two if shoot_on_aws.seed is one else one)
    assert (await shoot_on_aws.machines()).keys() == machines.keys()
    assert await shoot_on_aws.instances() == instances
    moved = await shoot_on_aws.until_nodes_run(6)
    assert {uid_of(each) for each in moved.values()} == {uid_of(each) for each in nodes.values()}


async def test_machines_that_aws_has_no_capacity_for_are_named_until_it_has_some(
    shoot_on_aws: ShootOnAws, aws: CorrectedAws
) -> None:
    """machine-controller-manager tries again after ten minutes."""
    kept = await shoot_on_aws.instances()
    words = "We currently do not have sufficient m5.large capacity."
    aws.fail("RunInstances", "InsufficientInstanceCapacity", message=words, times=1000)
    try:
        await shoot_on_aws.change_pools_in_vain(*POOLS, pool("wanted"))
        errors = await shoot_on_aws.errors()
    finally:
        aws.heal()
    said = " ".join(each["description"] for each in errors)
    assert words in said
    assert [zone for zone in (1, 2, 3) if f"-wanted-z{zone}-" in said] == [1, 2, 3]
    codes = {code for each in errors for code in each.get("codes", ())}
    assert codes == {"ERR_INFRA_RESOURCES_DEPLETED"}
    await shoot_on_aws.until_healthy()
    await shoot_on_aws.until_nodes_run(9)
    await shoot_on_aws.change_pools(*POOLS)
    assert ids(await shoot_on_aws.instances()) == ids(kept)


def ids(instances: Mapping[str, JsonObject]) -> set[str]:
    """Return the ids of instances."""
    return {each["InstanceId"] for each in instances.values()}
