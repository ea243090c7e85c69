"""Flows in an AWS where everything goes wrong: the final result is correct."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient, Credentials
from pergola.cloud.errors import CloudError
from pergola.flow import FlowFailed
from pergola.providers.aws.desired import Desired
from pergola.sandbox.aws.answers import Call
from pergola.sandbox.aws.corrections import QUICK
from pergola.sandbox.aws.world import managed_config
from tests.support.aws.flows import Flows, MortalAws, creation, deletion
from tests.support.aws.picture import differences
from tests.support.aws.steps import PUBLIC_KEY, TECHNICAL_ID, read_config
from tests.support.documented.symptoms import symptom
from tools.soak import in_soak

REGION = "eu-west-1"

TAGGED_BY = (
    *("NatGatewayId", "AllocationId", "SubnetId", "RouteTableId", "GroupId", "KeyPairId"),
    *("InternetGatewayId", "VpcEndpointId", "DhcpOptionsId", "VpcId"),
)
"""The fields with ids; inner resources come before those that contain them."""
Disturb = Callable[[MortalAws, str], None]


@pytest.fixture
async def client(mortal: MortalAws) -> AsyncIterator[AwsClient]:
    credentials = Credentials("test", "test")
    # Waits take no time here, but the waiting times that throttled requests reserve still add up.
    patient = replace(QUICK, total_seconds=3600)
    async with AwsClient(
        REGION, credentials=credentials, endpoint_url=mortal.url, retry=patient, sleep=at_once
    ) as client:
        yield client


async def at_once(seconds: float) -> None:
    """Do not wait when AWS is throttling."""
    del seconds
    await asyncio.sleep(0)


def desired() -> Desired:
    config = managed_config(REGION)
    config["networks"]["vpc"]["gatewayEndpoints"] = ["s3"]
    return Desired(
        technical_id=TECHNICAL_ID,
        region=REGION,
        config=read_config(config),
        node_range="10.180.0.0/16",
        shoot_uid="0b7c0a3e-6f0b-4a57-8a9e-7c3c8f1d2e4f",
        ssh_public_key=PUBLIC_KEY,
    )


class Undisturbed:
    """A cluster, and the writes and results of its undisturbed flows.

    Attributes:
        creating, deleting: the operations of the flows that change something.
    """

    def __init__(self, cluster: Flows) -> None:
        self.cluster = cluster
        self.whole: list[str] = []
        self.creating: set[str] = set()
        self.deleting: set[str] = set()

    async def learn(self) -> None:
        cluster = self.cluster
        await cluster.remember()
        cluster.aws.taken()
        await cluster.run(creation)
        self.creating = operations(cluster.aws.writes())
        self.whole = await cluster.picture()
        cluster.aws.taken()
        await cluster.run(deletion)
        self.deleting = operations(cluster.aws.writes())
        cluster.saved = {}

    async def is_whole(self) -> None:
        assert differences(await self.cluster.picture(), self.whole) == []

    async def is_gone(self) -> None:
        assert await self.cluster.things() == {}
        assert await self.cluster.lost() == set()


def operations(calls: list[str]) -> set[str]:
    return {call.partition(" ")[2] for call in calls}


@pytest.fixture
async def known(mortal: MortalAws, client: AwsClient) -> Undisturbed:
    known = Undisturbed(Flows(mortal, client, desired()))
    await known.learn()
    return known


def throttled(mortal: MortalAws, operation: str) -> None:
    mortal.throttle(operation, times=2)


def broken(mortal: MortalAws, operation: str) -> None:
    mortal.fail(operation, "InternalError", status=500)


def unanswered(mortal: MortalAws, operation: str) -> None:
    mortal.lose_answer(operation)


def exhausted(mortal: MortalAws, operation: str) -> None:
    mortal.exhaust(operation)


@pytest.mark.thorough("aws")
async def test_throttled_requests_are_retried_until_they_succeed(
    mortal: MortalAws, known: Undisturbed, *, is_thorough: bool
) -> None:
    """Waits for the rates that the client allows itself, with all operations more than a minute."""
    operations = known.creating | known.deleting
    for operation in operations if is_thorough else {"CreateSubnet", "DeleteSubnet"}:
        throttled(mortal, operation)

    await known.cluster.run(creation)
    await known.is_whole()
    await known.cluster.run(deletion)

    await known.is_gone()


@pytest.mark.parametrize("disturb", in_soak("aws", [unanswered, broken, exhausted]))
async def test_flows_recover_from_one_failure_of_each_write(
    mortal: MortalAws, known: Undisturbed, disturb: Disturb
) -> None:
    for operation in known.creating:
        disturb(mortal, operation)
    failed = await known.cluster.run_until_done(creation)
    await mortal.quiet()
    mortal.heal()
    await known.is_whole()
    for operation in known.deleting:
        disturb(mortal, operation)

    failed += await known.cluster.run_until_done(deletion)

    await mortal.quiet()
    await known.is_gone()
    assert failed > 5


@pytest.mark.parametrize("reads", in_soak("aws", [2, 1]))
async def test_new_resources_may_be_invisible_for_a_while(
    mortal: MortalAws, known: Undisturbed, reads: int
) -> None:
    mortal.hide(reads)

    await known.cluster.run_until_done(creation, runs=3)

    mortal.heal()
    await known.cluster.run(creation)
    for _ in range(reads):
        await known.cluster.things()
    await known.is_whole()
    await known.cluster.run(deletion)
    await known.is_gone()


async def test_an_exhausted_quota_is_reported_as_such(
    mortal: MortalAws, known: Undisturbed
) -> None:
    mortal.exhaust("AllocateAddress")

    with pytest.raises(FlowFailed, match=symptom("A quota is used up")):
        await known.cluster.run(creation)
    await known.cluster.run(creation)

    await known.is_whole()


@pytest.mark.parametrize("after", in_soak("aws", [6, 1, 12, 18]))
async def test_credentials_may_expire_anywhere(
    mortal: MortalAws, known: Undisturbed, after: int
) -> None:
    mortal.arm(after, mortal.expire)
    with pytest.raises(FlowFailed, match=symptom("AWS does not accept the credentials")):
        await known.cluster.run(creation)
    mortal.heal()
    await known.cluster.run(creation)
    await known.is_whole()
    mortal.arm(after // 2 + 1, mortal.expire)
    with pytest.raises(FlowFailed, match=symptom("AWS does not accept the credentials")):
        await known.cluster.run(deletion)
    mortal.heal()
    await known.cluster.run(deletion)

    await known.is_gone()


Vanish = Callable[[AwsClient], Awaitable[None]]


def vanishing(describe: str, items: str, name: str, delete: str, by: str = "Filters") -> Vanish:
    """Return a hook that deletes a cluster's resources of a kind, as far as AWS allows it."""

    async def vanish(client: AwsClient) -> None:
        tagged = {by: [{"Name": "tag-key", "Values": [f"kubernetes.io/cluster/{TECHNICAL_ID}"]}]}
        for thing in await client.pages("ec2", describe, items, **tagged):
            if thing.get("State") == "deleted":
                continue
            names = [thing[name]] if delete == "DeleteVpcEndpoints" else thing[name]
            parameter = "VpcEndpointIds" if delete == "DeleteVpcEndpoints" else name
            try:
                await client.call("ec2", delete, **{parameter: names})
            except CloudError:
                continue

    return vanish


VANISHING = {
    "CreateSubnet": vanishing("DescribeSubnets", "Subnets", "SubnetId", "DeleteSubnet"),
    "CreateRouteTable": vanishing(
        "DescribeRouteTables", "RouteTables", "RouteTableId", "DeleteRouteTable"
    ),
    "CreateSecurityGroup": vanishing(
        "DescribeSecurityGroups", "SecurityGroups", "GroupId", "DeleteSecurityGroup"
    ),
    "CreateNatGateway": vanishing(
        "DescribeNatGateways", "NatGateways", "NatGatewayId", "DeleteNatGateway", "Filter"
    ),
    "AllocateAddress": vanishing(
        "DescribeAddresses", "Addresses", "AllocationId", "ReleaseAddress"
    ),
    "CreateInternetGateway": vanishing(
        "DescribeInternetGateways", "InternetGateways", "InternetGatewayId", "DeleteInternetGateway"
    ),
    "CreateVpcEndpoint": vanishing(
        "DescribeVpcEndpoints", "VpcEndpoints", "VpcEndpointId", "DeleteVpcEndpoints"
    ),
    "ImportKeyPair": vanishing("DescribeKeyPairs", "KeyPairs", "KeyName", "DeleteKeyPair"),
}


@pytest.mark.parametrize("created", in_soak("aws", VANISHING))
async def test_a_resource_deleted_during_the_flow_is_recreated(
    mortal: MortalAws, client: AwsClient, known: Undisturbed, created: str
) -> None:
    async def vanish(call: Call) -> None:
        del call
        await VANISHING[created](client)

    mortal.after(created, vanish)
    known.cluster.longest = 10

    await known.cluster.run_until_done(creation, runs=4)
    await known.cluster.run(creation)

    await known.is_whole()


@pytest.mark.parametrize("created", in_soak("aws", VANISHING))
async def test_a_resource_deleted_between_two_runs_is_recreated(
    client: AwsClient, known: Undisturbed, created: str
) -> None:
    await known.cluster.run(creation)
    await VANISHING[created](client)

    await known.cluster.run_until_done(creation, runs=4)

    await known.is_whole()


@pytest.mark.soak("aws")
async def test_removed_tags_are_restored(client: AwsClient, known: Undisturbed) -> None:
    await known.cluster.run(creation)
    names = [name for name in map(ec2_name, (await known.cluster.things()).values()) if name]

    for several in [*([name] for name in names), names]:
        await client.call("ec2", "DeleteTags", Resources=several)
        await known.cluster.run(creation)
        assert differences(await known.cluster.picture(), known.whole) == [], several

    await known.cluster.run(deletion)
    await known.is_gone()


def ec2_name(thing: JsonObject) -> str:
    """Return EC2's name of a taggable resource type, or an empty text for others."""
    own = [str(thing[field]) for field in TAGGED_BY if field in thing and thing.get("Tags")]
    return next(iter(own), "")


async def test_a_failed_nat_gateway_is_replaced(mortal: MortalAws, known: Undisturbed) -> None:
    mortal.fail_nats()

    await known.cluster.run_until_done(creation, runs=3)

    present = [line for line in await known.cluster.picture() if '"State":"failed"' not in line]
    assert differences(present, known.whole) == []
    await known.cluster.run(deletion)
    assert await known.cluster.lost() == set()
