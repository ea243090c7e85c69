"""Every mode of an Infrastructure: creation, idle reconciliation and deletion (spec 30 §4, §13)."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.kube.client import Client
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import Network, everything, managed_config
from pergola.testing.waiting import running
from tests.support.aws.site import SHOOT, AwsSite, aws_site


@pytest.fixture
async def site(cluster_client: Client, namespace: str, aws: CorrectedAws) -> AsyncIterator[AwsSite]:
    site = await aws_site(cluster_client, namespace, aws)
    yield site
    await site.clean_up()


@pytest.mark.parametrize(("zones", "most"), [("a", 45), ("abc", 75)])
async def test_the_number_of_requests_is_minimal(site: AwsSite, zones: str, most: int) -> None:
    async with running(site.controller()):
        await site.ask(managed_config(site.region, zones=zones))
        await site.until_operation("Create")
        create = without_polls(site.aws.taken())
        await site.again()
        steady = site.aws.taken()
        await site.delete()
        await site.until_gone()
        delete = without_polls(site.aws.taken())

    assert len(create) <= most
    assert len(steady) <= 14
    assert len(delete) <= 45


async def test_a_user_provided_network_takes_few_requests(site: AwsSite, client: AwsClient) -> None:
    network = await Network.complete(client)
    group = await network.security_group()
    site.aws.taken()
    async with running(site.controller()):
        await site.ask(network.config(group=group))
        await site.until_operation("Create")
        create = [call for call in site.aws.requests if not call.is_write]
        writes = site.aws.writes()
        await site.again()
        steady = site.aws.taken()

    assert len(create) <= 16
    assert len(steady) <= 12
    assert len(writes) <= 5 + 3  # one CreateTags for each set of tags


def without_polls(calls: list[str]) -> list[str]:
    """Return the calls without repeated polls of NAT gateways, whose number depends on AWS."""
    polls = "ec2 DescribeNatGateways"
    return [call for call in calls if call != polls] + [polls] * (polls in calls)


async def of_dual_stack(site: AwsSite, client: AwsClient) -> JsonObject:
    await site.put_cluster(shoot_with("IPv4", "IPv6"))
    return managed_config(site.region)


async def of_ipv6(site: AwsSite, client: AwsClient) -> JsonObject:
    await site.put_cluster(shoot_with("IPv6"))
    return managed_config(site.region)


async def in_an_existing_vpc(site: AwsSite, client: AwsClient) -> JsonObject:
    network = await Network.create(client, zones="")
    await network.add_gateway()
    return managed_config(site.region, vpc=network.id)


async def with_an_existing_security_group(site: AwsSite, client: AwsClient) -> JsonObject:
    network = await Network.create(client, zones="")
    await network.add_gateway()
    config = managed_config(site.region, vpc=network.id)
    config["networks"]["nodesSecurityGroupID"] = await network.security_group()
    return config


async def without_egress(site: AwsSite, client: AwsClient) -> JsonObject:
    network = await Network.create(client, zones="")
    config = managed_config(site.region, vpc=network.id, public=False)
    config["networks"]["vpc"]["gatewayEndpoints"] = ["s3"]
    return config


async def byo_and_private(site: AwsSite, client: AwsClient) -> JsonObject:
    network = await Network.create(client, zones="ab")
    return network.config(group=await network.security_group())


async def byo_with_dual_stack(site: AwsSite, client: AwsClient) -> JsonObject:
    await site.put_cluster(shoot_with("IPv4", "IPv6"))
    network = await Network.complete(client, zones="ab", ipv6=True)
    return network.config(group=await network.security_group())


async def byo_without_a_group(site: AwsSite, client: AwsClient) -> JsonObject:
    network = await Network.complete(client, zones="a")
    return network.config()


async def with_a_file_system(site: AwsSite, client: AwsClient) -> JsonObject:
    return {**managed_config(site.region), "elasticFileSystem": {"enabled": True}}


MODES = (
    of_dual_stack,
    of_ipv6,
    in_an_existing_vpc,
    with_an_existing_security_group,
    without_egress,
    byo_and_private,
    byo_with_dual_stack,
    byo_without_a_group,
    with_a_file_system,
)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.__name__.replace("_", "-"))
async def test_every_mode_is_created_idle_and_deleted_cleanly(
    site: AwsSite,
    client: AwsClient,
    mode: Callable[[AwsSite, AwsClient], Awaitable[JsonObject]],
) -> None:
    config = await mode(site, client)
    before = await everything(client)
    async with running(site.controller()):
        await site.ask(config)
        created = await site.until_operation("Create")
        site.aws.taken()
        again = await site.again()
        writes = site.aws.writes()
        await site.delete()
        await site.until_gone()

    assert writes == []
    assert again["status"]["providerStatus"] == created["status"]["providerStatus"]
    assert (await everything(client)).keys() == before.keys()


def shoot_with(*families: str) -> JsonObject:
    """Return the Shoot with these IP families."""
    networking = {**SHOOT["spec"]["networking"], "ipFamilies": list(families)}
    return {**SHOOT, "spec": {"networking": networking}}


async def test_a_user_provided_network_is_only_tagged(site: AwsSite, client: AwsClient) -> None:
    network = await Network.complete(client)
    group = await network.security_group()
    before = await everything(client)
    site.aws.taken()
    async with running(site.controller()):
        await site.ask(network.config(group=group))
        done = await site.until_operation("Create")
        created = site.aws.writes()
        await site.again()
        assert site.aws.writes() == []
        await site.delete()
        await site.until_gone()

    assert set(created) == {
        "iam CreateRole",
        "iam PutRolePolicy",
        "iam CreateInstanceProfile",
        "iam AddRoleToInstanceProfile",
        "ec2 ImportKeyPair",
        "ec2 CreateTags",
    }
    assert done["status"]["providerStatus"]["vpc"]["securityGroups"] == [
        {"purpose": "nodes", "id": group}
    ]
    after = await everything(client)
    assert after.keys() == before.keys()
