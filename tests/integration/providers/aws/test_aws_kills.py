"""Flows continue after a kill anywhere: same result, no duplicates, no leftovers."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from itertools import count

import pytest

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.providers.aws.desired import Desired
from pergola.sandbox.aws.corrections import QUICK
from pergola.sandbox.aws.world import Network, managed_config
from tests.support.aws.flows import Build, Flows, MortalAws, creation, deletion
from tests.support.aws.picture import differences
from tests.support.aws.steps import OTHER_PUBLIC_KEY, PUBLIC_KEY, TECHNICAL_ID, read_config
from tools.soak import in_soak

REGION = "eu-west-1"
PARTS = 6
"""The kills are distributed over this many tests, which can run in parallel."""
FEW = 24
"""`make test` kills after every write of this distance only, in the first part."""
LEAST_WRITES = 10
"""A flow with fewer writes did not do its work."""
LONGEST = 40


@pytest.fixture
async def client(mortal: MortalAws) -> AsyncIterator[AwsClient]:
    async with mortal.client(REGION, retry=QUICK) as client:
        yield client


def desired(config: JsonObject, *families: str) -> Desired:
    return Desired(
        technical_id=TECHNICAL_ID,
        region=REGION,
        config=read_config(config),
        families=families or ("IPv4",),
        node_range="10.180.0.0/16",
        shoot_uid="0b7c0a3e-6f0b-4a57-8a9e-7c3c8f1d2e4f",
        ssh_public_key=PUBLIC_KEY,
    )


def with_everything() -> Desired:
    """Return a cluster with a resource of every kind."""
    config = managed_config(REGION)
    config["networks"]["vpc"]["gatewayEndpoints"] = ["s3"]
    config["elasticFileSystem"] = {"enabled": True}
    return desired(config, "IPv4", "IPv6")


def changed(address: str) -> Desired:
    """Return a changed cluster: an extra zone, an endpoint, another key and a user's elastic IP."""
    config = managed_config(REGION, zones=("a", "b"))
    config["networks"]["vpc"]["gatewayEndpoints"] = ["s3"]
    config["networks"]["zones"][0]["elasticIPAllocationID"] = address
    config["enableECRAccess"] = False
    return replace(desired(config), ssh_public_key=OTHER_PUBLIC_KEY)


async def flows(mortal: MortalAws, client: AwsClient, desired: Desired) -> Flows:
    cluster = Flows(mortal, client, desired)
    await cluster.remember()
    return cluster


async def is_killed_once(cluster: Flows, flow: Build, write: int) -> bool:
    """Kill a flow once and then complete it; return False if it has no such write."""
    is_killed = await cluster.is_killed_after(write, flow)
    if is_killed:
        await cluster.run(flow)
    return is_killed


def kills(part: int, *, is_thorough: bool) -> Iterator[int]:
    """Yield the numbers of the writes after which a part kills a flow."""
    yield from count(1 + part, PARTS if is_thorough else FEW)


async def nothing_is_left(cluster: Flows) -> None:
    """Check that a deletion left nothing, and start over without a state."""
    left = [line for line in await cluster.picture() if not line.startswith("state ")]
    assert left == []
    assert await cluster.lost() == set()
    cluster.saved = {}


@pytest.mark.parametrize("part", in_soak("aws", range(PARTS)))
async def test_creation_and_deletion_survive_a_kill_after_any_write(
    mortal: MortalAws, client: AwsClient, part: int, *, is_thorough: bool
) -> None:
    cluster = await flows(mortal, client, with_everything())
    await cluster.run(creation)
    whole = await cluster.picture()
    await cluster.run(deletion)
    await nothing_is_left(cluster)

    killed = True
    for write in kills(part, is_thorough=is_thorough):
        killed = await is_killed_once(cluster, creation, write)
        assert differences(await cluster.picture(), whole) == [], (
            f"creation was killed after write {write}"
        )
        killed = await is_killed_once(cluster, deletion, write) or killed
        await nothing_is_left(cluster)
        if not killed:
            break
    assert write > LEAST_WRITES


@pytest.mark.parametrize("part", in_soak("aws", range(PARTS)))
async def test_a_creation_that_was_killed_after_any_write_can_be_deleted(
    mortal: MortalAws, client: AwsClient, part: int, *, is_thorough: bool
) -> None:
    cluster = await flows(mortal, client, with_everything())

    for write in kills(part, is_thorough=is_thorough):
        killed = await cluster.is_killed_after(write, creation)
        await cluster.run(deletion)
        await nothing_is_left(cluster)
        if not killed:
            break
    assert write > LEAST_WRITES


@pytest.mark.parametrize("part", in_soak("aws", range(PARTS)))
async def test_a_change_survives_a_kill_after_any_write(
    mortal: MortalAws, client: AwsClient, part: int, *, is_thorough: bool
) -> None:
    answer = await client.call("ec2", "AllocateAddress", Domain="vpc")
    before, after = desired(managed_config(REGION)), changed(answer["AllocationId"])
    cluster = await flows(mortal, client, before)
    await cluster.run(creation)
    cluster.desired = after
    await cluster.run(creation)
    whole = await cluster.picture()
    await cluster.run(deletion)
    await nothing_is_left(cluster)

    for write in kills(part, is_thorough=is_thorough):
        cluster.desired = before
        await cluster.run(creation)
        cluster.desired = after
        killed = await is_killed_once(cluster, creation, write)
        assert differences(await cluster.picture(), whole) == [], (
            f"the change was killed after write {write}"
        )
        await cluster.run(deletion)
        await nothing_is_left(cluster)
        if not killed:
            break
    assert write > LEAST_WRITES


@pytest.mark.thorough("aws")
async def test_flows_in_a_user_provided_network_survive_a_kill_after_any_write(
    mortal: MortalAws, client: AwsClient, *, is_thorough: bool
) -> None:
    network = await Network.complete(client, zones=("a", "b"))
    group = await network.security_group()
    cluster = Flows(mortal, client, desired(network.config(group=group)))
    for _ in range(2):  # tags of roles outlast the first deletion
        await cluster.run(creation)
        whole = await cluster.picture()
        await cluster.run(deletion)
        cluster.saved = {}
        byo = await cluster.picture()

    for write in count(1, 1 if is_thorough else FEW):
        created = await is_killed_once(cluster, creation, write)
        assert differences(await cluster.picture(), whole) == [], (
            f"creation was killed after write {write}"
        )
        deleted = await is_killed_once(cluster, deletion, write)
        cluster.saved = {}
        assert differences(await cluster.picture(), byo) == [], (
            f"deletion was killed after write {write}"
        )
        if not (created or deleted):
            break


@pytest.mark.soak("aws")
@pytest.mark.parametrize("every", [3, 5])
async def test_a_flow_that_is_killed_repeatedly_still_completes(
    mortal: MortalAws, client: AwsClient, every: int
) -> None:
    cluster = await flows(mortal, client, with_everything())
    await cluster.run(creation)
    whole = await cluster.picture()
    await cluster.run(deletion)
    await nothing_is_left(cluster)

    cluster.interval = 0.0  # lives that do not record what they removed repeat each other
    for _ in range(LONGEST):
        if not await cluster.is_killed_after(every, creation):
            break
    assert differences(await cluster.picture(), whole) == []
    for _ in range(LONGEST):
        if not await cluster.is_killed_after(every, deletion):
            break
    await nothing_is_left(cluster)
