"""The shipped IAM policies allow each call of whole flows, with moto as AWS."""

from dataclasses import replace

import pytest

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.flow import State
from pergola.providers.aws.flows.delete import delete_steps
from pergola.providers.aws.flows.reconcile import reconcile_steps
from pergola.providers.aws.iam_policy import Feature, Mode, actions
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import Network, managed_config
from tests.support.aws.steps import StepsOf

EFS: JsonObject = {"enabled": True}


async def live(aws: CorrectedAws, cluster: StepsOf) -> set[str]:
    """Create, reconcile and delete a cluster, and return the actions that were used."""
    aws.taken()
    for _ in range(2):
        await cluster.ensure(reconcile_steps)
    await cluster.ensure(lambda desired: delete_steps(desired, State(cluster.saved)))
    return {call.replace(" ", ":") for call in aws.taken()}


async def test_a_managed_network_needs_only_the_shipped_policy(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = StepsOf.created(client, managed_config(client.region, zones=("a", "b")))

    taken = await live(aws, cluster)

    assert taken - set(actions(Mode.MANAGED)) == set()


async def test_file_systems_and_ipv6_need_only_the_policies_of_their_features(
    aws: CorrectedAws, client: AwsClient
) -> None:
    config = {**managed_config(client.region), "elasticFileSystem": EFS}
    cluster = StepsOf.created(client, config)
    cluster.want(families=("IPv4", "IPv6"))

    taken = await live(aws, cluster)

    assert taken - set(actions(Mode.MANAGED)) != set()
    assert taken - set(actions(Mode.MANAGED, [Feature.EFS, Feature.IPV6])) == set()


@pytest.mark.parametrize(("byo_group", "features"), [(True, []), (False, ["security-group"])])
async def test_a_user_provided_network_needs_only_the_shipped_policy(
    aws: CorrectedAws, client: AwsClient, features: list[str], *, byo_group: bool
) -> None:
    network = await Network.complete(client, zones=("a", "b"))
    group = await network.security_group() if byo_group else ""
    cluster = StepsOf.byo(client, network, group=group)

    taken = await live(aws, cluster)

    assert taken - set(actions(Mode.BYO, [Feature(name) for name in features])) == set()


async def test_a_user_provided_group_is_never_written_in_the_life_of_a_cluster(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.complete(client, zones=("a",))
    cluster = StepsOf.byo(client, network, group=await network.security_group())

    taken = await live(aws, cluster)

    about_groups = {action for action in taken if "SecurityGroup" in action}
    assert about_groups == {"ec2:DescribeSecurityGroups"}


async def test_a_check_needs_only_the_shipped_policy(aws: CorrectedAws, client: AwsClient) -> None:
    network = await Network.complete(client, zones=("a",))
    cluster = StepsOf.byo(client, network)
    aws.taken()

    await cluster.work()

    taken = {call.replace(" ", ":") for call in aws.taken()}
    assert taken - set(actions(Mode.CHECK)) == set()


async def test_a_check_of_large_pools_without_an_overlay_reads_the_quota_of_routes(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.complete(client, zones=("a",))
    cluster = StepsOf.byo(client, network)
    cluster.desired = replace(cluster.desired, overlay=False, most_nodes={"a": 60})
    aws.taken()

    work = await cluster.work()

    taken = {call.replace(" ", ":") for call in aws.taken()}
    assert work.snapshot.route_quota == 50
    assert taken - set(actions(Mode.CHECK)) == {"servicequotas:GetServiceQuota"}
    assert taken - set(actions(Mode.CHECK, [Feature.ROUTE_CONTROLLER])) == set()


@pytest.mark.parametrize("code", ["AccessDeniedException", "NoSuchResourceException"])
async def test_a_quota_that_cannot_be_read_is_unknown(
    aws: CorrectedAws, client: AwsClient, code: str
) -> None:
    network = await Network.complete(client, zones=("a",))
    cluster = StepsOf.byo(client, network)
    cluster.desired = replace(cluster.desired, overlay=False, most_nodes={"a": 60})
    aws.fail("GetServiceQuota", code, status=400)

    work = await cluster.work()

    assert work.snapshot.route_quota is None
    assert work.snapshot.subnets
