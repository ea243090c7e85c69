"""Subnets for load balancers, and tags on user-provided resources: spec 30 §8, with moto as AWS."""

import pytest

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.extension_api.errors import Code, codes_of
from pergola.flow import FlowFailed, State
from pergola.providers.aws import state as keys
from pergola.providers.aws.byo import byo_delete_steps, byo_steps
from pergola.providers.aws.desired import MARKER, ROLE_INTERNAL, ROLE_PUBLIC
from pergola.providers.aws.status import provider_status
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import Network, everything
from tests.support.aws.byo_clusters import CLUSTER, OTHER_CLUSTER, settle, tags_of_subnets
from tests.support.aws.steps import StepsOf


def status_of(cluster: StepsOf) -> JsonObject:
    return provider_status(cluster.desired, State(cluster.saved))


def subnets_in_status(cluster: StepsOf) -> dict[tuple[str, str], str]:
    found = status_of(cluster)["vpc"]["subnets"]
    return {(each["purpose"], each["zone"]): each["id"] for each in found}


def deny(aws: CorrectedAws, operation: str, times: int = 10) -> None:
    aws.fail(operation, "UnauthorizedOperation", status=403, times=times)


async def test_named_subnets_get_both_tags(client: AwsClient) -> None:
    network = await Network.complete(client, zones=("a",))
    cluster = StepsOf.byo(client, network)

    await cluster.ensure(byo_steps)

    tags = await tags_of_subnets(client)
    assert tags[network.public["a"]] == {CLUSTER: "shared", ROLE_PUBLIC: "1", MARKER: ROLE_PUBLIC}
    assert tags[network.internal["a"]] == {
        CLUSTER: "shared",
        ROLE_INTERNAL: "1",
        MARKER: ROLE_INTERNAL,
    }
    assert tags[network.workers["a"]] == {CLUSTER: "shared"}


async def test_a_second_tagged_subnet_in_a_zone_is_refused_without_a_change(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.complete(client, zones=("a",))
    named = network.public["a"]
    other = await network.add_subnet(
        "public", "a", cidr="10.180.9.0/24", tags={CLUSTER: "shared", ROLE_PUBLIC: "1"}
    )
    network.public["a"] = named
    cluster = StepsOf.byo(client, network)
    before = await settle(client)
    aws.writes()

    with pytest.raises(FlowFailed) as failed:
        await cluster.ensure(byo_steps)

    assert named in str(failed.value)
    assert other in str(failed.value)
    assert "zone eu-west-1a" in str(failed.value)
    assert "aws ec2 delete-tags" in str(failed.value)
    assert codes_of(failed.value.failures[0].cause) == (Code.CONFIGURATION_PROBLEM,)
    assert aws.writes() == []
    assert await everything(client) == before
    assert cluster.saved == {keys.VPC: network.id}


async def test_two_tagged_subnets_in_a_zone_are_refused_if_the_config_names_none(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.create(client)
    tags = {CLUSTER: "shared", ROLE_INTERNAL: "1"}
    one = await network.add_subnet("internal", "a", tags=tags)
    two = await network.add_subnet("internal", "a", cidr="10.180.9.0/24", tags=tags)
    cluster = StepsOf.byo(client, network)
    cluster.configure(networks=network.config(balancers=False)["networks"])
    aws.writes()

    with pytest.raises(FlowFailed) as failed:
        await cluster.ensure(byo_steps)

    assert one in str(failed.value)
    assert two in str(failed.value)
    assert aws.writes() == []


async def test_a_tagged_subnet_in_a_zone_outside_the_cluster_is_not_in_the_status(
    client: AwsClient,
) -> None:
    network = await Network.create(client)
    subnet = await network.add_subnet("internal", "b", tags={CLUSTER: "shared", ROLE_INTERNAL: "1"})
    cluster = StepsOf.byo(client, network)
    zones = network.config()["networks"]["zones"]
    cluster.configure(networks={"vpc": {"id": network.id}, "zones": zones[:1]})

    await cluster.ensure(byo_steps)

    assert subnet not in subnets_in_status(cluster).values()
    assert keys.zones_of(State(cluster.saved)) == ["eu-west-1a"]


async def test_naming_a_discovered_subnet_writes_nothing_and_naming_another_is_refused(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.create(client)
    tags = {CLUSTER: "shared", ROLE_INTERNAL: "1"}
    found = await network.add_subnet("internal", "a", tags=tags)
    cluster = StepsOf.byo(client, network)
    cluster.configure(networks=network.config(balancers=False)["networks"])
    await cluster.ensure(byo_steps)
    aws.writes()

    cluster.configure(networks=network.config()["networks"])
    await cluster.ensure(byo_steps)
    assert aws.writes() == []
    await network.add_subnet("internal", "a", cidr="10.180.9.0/24")
    cluster.configure(networks=network.config()["networks"])
    with pytest.raises(FlowFailed, match=f"but {found} has the tags"):
        await cluster.ensure(byo_steps)

    assert network.internal["a"] != found


async def test_existing_tags_of_the_user_are_not_changed(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.complete(client, zones=("a",))
    present = {CLUSTER: "owned", "team": "x", OTHER_CLUSTER: "owned"}
    await network.tag(network.workers["a"], **present)
    cluster = StepsOf.byo(client, network)

    await cluster.ensure(byo_steps)
    await cluster.ensure(byo_delete_steps)

    assert (await tags_of_subnets(client))[network.workers["a"]] == present


async def test_without_permission_to_create_tags_the_missing_tags_are_reported(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.complete(client, zones=("a",))
    cluster = StepsOf.byo(client, network)
    deny(aws, "CreateTags")

    await cluster.ensure(byo_steps)

    assert (
        "aws ec2 create-tags --region eu-west-1 "
        f"--resources {network.workers['a']} --tags Key={CLUSTER},Value=shared"
    ) in cluster.warnings[0]
    assert len(cluster.warnings) == 3
    assert subnets_in_status(cluster)["public", "eu-west-1a"] == network.public["a"]


async def test_without_permission_to_create_tags_subnets_with_tags_are_used_and_not_changed(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.complete(client, zones=("a",))
    cluster = StepsOf.byo(client, network)
    deny(aws, "CreateTags", times=3)
    await cluster.ensure(byo_steps)
    await network.tag(network.workers["a"], **{CLUSTER: "shared"})
    await network.tag(network.public["a"], **{CLUSTER: "shared", ROLE_PUBLIC: "1"})
    await network.tag(network.internal["a"], **{CLUSTER: "shared", ROLE_INTERNAL: "1"})
    before = await settle(client)
    aws.writes()

    await cluster.ensure(byo_steps)
    assert cluster.warnings == []
    await cluster.ensure(byo_delete_steps)

    assert aws.writes() == []
    assert await everything(client) == before
