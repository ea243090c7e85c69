"""Leaving a user-provided network: spec 30 §9.3, with moto as AWS."""

import copy

import pytest

from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.extension_api.cluster import Cluster, Shoot
from pergola.extensions.actuator import Context, Status
from pergola.flow import FlowFailed
from pergola.kube.client import Client
from pergola.providers.aws import state as keys
from pergola.providers.aws.actuator import AwsInfrastructure, AwsSettings
from pergola.providers.aws.byo import byo_delete_steps, byo_steps
from pergola.providers.aws.desired import MARKER, ROLE_INTERNAL, ROLE_PUBLIC
from pergola.providers.aws.iam_policy import Feature, Mode, actions
from pergola.providers.aws.resources import iam, service_range
from pergola.providers.aws.resources.tags import specification
from pergola.runtime.clock import SystemClock
from pergola.sandbox.aws.answers import Call
from pergola.sandbox.aws.corrections import QUICK, CorrectedAws
from pergola.sandbox.aws.world import Network, everything, tags_in, without_tags
from tests.support.aws.byo_clusters import CLUSTER, OTHER, OTHER_CLUSTER, settle, tags_of_subnets
from tests.support.aws.flows import Flows, MortalAws, creation
from tests.support.aws.flows import deletion as whole_deletion
from tests.support.aws.site import SHOOT, AwsSite, aws_site
from tests.support.aws.steps import StepsOf


@pytest.mark.parametrize("overlay", [True, False])
async def test_deletion_restores_everything_except_for_tags_of_roles(
    client: AwsClient, *, overlay: bool
) -> None:
    network = await Network.complete(client)
    await network.tag(network.public["a"], **{ROLE_PUBLIC: "1"})
    cluster = StepsOf.byo(client, network, group=await network.security_group())
    cluster.want(overlay=overlay)
    before = await settle(client)

    await cluster.ensure(byo_steps)
    await cluster.ensure(byo_delete_steps)

    after = await everything(client)
    assert without_tags(after) == without_tags(before)
    roles = {f"Subnets/{subnet}": {ROLE_PUBLIC: "1"} for subnet in network.public.values()}
    roles |= {f"Subnets/{subnet}": {ROLE_INTERNAL: "1"} for subnet in network.internal.values()}
    assert tags_in(after) == {**tags_in(before), **roles}
    assert {key for key, value in cluster.saved.items() if value} == {keys.VPC}


async def test_tags_that_the_user_set_on_discovered_subnets_are_kept(client: AwsClient) -> None:
    network = await Network.complete(client, zones=("a", "b"))
    for subnet, role in (
        (network.public["a"], ROLE_PUBLIC),
        (network.internal["b"], ROLE_INTERNAL),
    ):
        await network.tag(subnet, **{CLUSTER: "shared", role: "1"})
    cluster = StepsOf.byo(client, network)
    cluster.configure(networks=network.config(balancers=False)["networks"])
    before = await settle(client)

    await cluster.ensure(byo_steps)
    await cluster.ensure(byo_delete_steps)
    await cluster.ensure(byo_delete_steps)

    assert await everything(client) == before


async def test_tags_that_the_user_set_on_named_subnets_are_kept_even_after_two_deletions(
    client: AwsClient,
) -> None:
    network = await Network.complete(client, zones=("a",))
    await network.tag(network.workers["a"], **{CLUSTER: "shared"})
    cluster = StepsOf.byo(client, network)

    await cluster.ensure(byo_steps)
    await cluster.ensure(byo_delete_steps)
    await cluster.ensure(byo_delete_steps)

    tags = await tags_of_subnets(client)
    assert tags[network.workers["a"]] == {CLUSTER: "shared"}
    assert tags[network.public["a"]] == {ROLE_PUBLIC: "1"}


async def test_tags_of_the_user_are_not_mistaken_for_ours_after_a_failed_first_run(
    client: AwsClient,
) -> None:
    network = await Network.complete(client, zones=("a",))
    await network.tag(network.workers["a"], **{CLUSTER: "shared"})
    cluster = StepsOf.byo(client, network)
    await cluster.ensure(iam.steps)

    await cluster.ensure(byo_steps)
    await cluster.ensure(byo_delete_steps)

    assert (await tags_of_subnets(client))[network.workers["a"]] == {CLUSTER: "shared"}


async def test_deleting_one_of_two_clusters_in_the_same_subnets_does_not_affect_the_other(
    client: AwsClient,
) -> None:
    network = await Network.complete(client, zones=("a", "b"))
    one, other = (StepsOf.byo(client, network) for _ in range(2))
    other.want(technical_id=OTHER)
    for cluster in (one, other):
        cluster.want(overlay=False)
        await cluster.ensure(byo_steps)
    both = await tags_of_subnets(client)

    await one.ensure(byo_delete_steps)

    assert all(tags.keys() >= {CLUSTER, OTHER_CLUSTER} for tags in both.values())
    assert await tags_of_subnets(client) == {
        name: {key: value for key, value in tags.items() if key not in (CLUSTER, MARKER)}
        for name, tags in both.items()
    }
    await other.ensure(byo_delete_steps)
    left = await tags_of_subnets(client)
    assert {key for tags in left.values() for key in tags} == {ROLE_PUBLIC, ROLE_INTERNAL}


async def test_the_next_run_completes_an_interrupted_deletion(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.complete(client)
    cluster = StepsOf.byo(client, network)
    await cluster.ensure(byo_steps)

    async def then_refuse(call: Call) -> None:
        del call
        aws.fail("DeleteTags", "AuthFailure", status=401)

    aws.after("DeleteTags", then_refuse)
    aws.writes()
    with pytest.raises(FlowFailed):
        await cluster.ensure(byo_delete_steps)
    assert aws.writes() == ["ec2 DeleteTags"] * 2
    assert any(CLUSTER in tags for tags in (await tags_of_subnets(client)).values())

    await cluster.ensure(byo_delete_steps)

    assert not any(CLUSTER in tags for tags in (await tags_of_subnets(client)).values())


@pytest.mark.soak("aws")
async def test_a_missing_subnet_does_not_stop_a_deletion(client: AwsClient) -> None:
    network = await Network.complete(client, zones=("a", "b"))
    cluster = StepsOf.byo(client, network)
    await cluster.ensure(byo_steps)
    gone = network.internal["a"]
    tables = await client.pages(
        "ec2",
        "DescribeRouteTables",
        "RouteTables",
        Filters=[{"Name": "association.subnet-id", "Values": [gone]}],
    )
    for association in tables[0]["Associations"]:
        await client.call(
            "ec2",
            "DisassociateRouteTable",
            AssociationId=association["RouteTableAssociationId"],
        )
    await client.call("ec2", "DeleteSubnet", SubnetId=gone)

    await cluster.ensure(byo_delete_steps)

    assert not any(CLUSTER in tags for tags in (await tags_of_subnets(client)).values())


@pytest.mark.soak("aws")
async def test_the_tags_of_a_cluster_of_another_controller_are_taken_over_and_removed(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.complete(client, zones=("a",))
    for subnet, role in (
        (network.public["a"], ROLE_PUBLIC),
        (network.internal["a"], ROLE_INTERNAL),
    ):
        await network.tag(subnet, **{CLUSTER: "shared", role: "1", MARKER: role})
    table = network.tables[network.workers["a"]]
    await network.tag(table, **{CLUSTER: "shared"})
    await network.tag(network.workers["a"], **{CLUSTER: "shared"})
    cluster = StepsOf.byo(client, network)
    cluster.want(overlay=False)
    for key, value in (
        (keys.SUBNET_WORKERS, network.workers["a"]),
        (keys.SUBNET_PUBLIC, network.public["a"]),
        (keys.SUBNET_INTERNAL, network.internal["a"]),
        (keys.ROUTE_TABLE, table),
    ):
        cluster.saved[keys.zone_key("eu-west-1a", key)] = value
    aws.writes()

    await cluster.ensure(byo_steps)
    assert aws.writes() == []
    await cluster.ensure(byo_delete_steps)

    assert await tags_of_subnets(client) == {
        network.public["a"]: {ROLE_PUBLIC: "1"},
        network.internal["a"]: {ROLE_INTERNAL: "1"},
    }


@pytest.mark.soak("aws")
async def test_tags_are_removed_even_if_the_state_was_lost(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.complete(client, zones=("a",))
    cluster = StepsOf.byo(client, network)
    await cluster.ensure(byo_steps, iam.steps)
    cluster.saved = {keys.VPC: network.id}
    aws.writes()

    await cluster.ensure(byo_steps)
    assert aws.writes() == []
    await cluster.ensure(byo_delete_steps)

    assert await tags_of_subnets(client) == {
        network.public["a"]: {ROLE_PUBLIC: "1"},
        network.internal["a"]: {ROLE_INTERNAL: "1"},
    }


@pytest.mark.soak("aws")
async def test_tags_of_discovered_subnets_are_kept_after_the_config_names_them(
    client: AwsClient,
) -> None:
    network = await Network.complete(client, zones=("a",))
    discovered = ((network.public["a"], ROLE_PUBLIC), (network.internal["a"], ROLE_INTERNAL))
    for subnet, role in discovered:
        await network.tag(subnet, **{CLUSTER: "shared", role: "1"})
    cluster = StepsOf.byo(client, network)
    cluster.configure(networks=network.config(balancers=False)["networks"])
    await cluster.ensure(byo_steps)

    cluster.configure(networks=network.config()["networks"])
    await cluster.ensure(byo_steps)
    await cluster.ensure(byo_delete_steps)

    tags = await tags_of_subnets(client)
    assert [tags[subnet] for subnet, _ in discovered] == [
        {CLUSTER: "shared", role: "1"} for _, role in discovered
    ]


@pytest.mark.soak("aws")
async def test_tags_of_the_cluster_are_removed_after_the_whole_flow_rebuilt_a_lost_state(
    moto_server: str,
) -> None:
    async with MortalAws(moto_server) as aws, aws.client("eu-west-1", retry=QUICK) as client:
        cluster = await _lost(aws, client)

        await cluster.run(creation)
        await cluster.run(whole_deletion)

        assert not any(CLUSTER in tags for tags in (await tags_of_subnets(client)).values())


@pytest.mark.soak("aws")
@pytest.mark.parametrize("writes", [1, 2])
async def test_tags_of_the_cluster_are_removed_if_the_first_run_after_the_loss_was_killed(
    moto_server: str, writes: int
) -> None:
    async with MortalAws(moto_server) as aws, aws.client("eu-west-1", retry=QUICK) as client:
        cluster = await _lost(aws, client)
        cluster.interval = 0.0

        assert await cluster.is_killed_after(writes, creation)
        await cluster.run(creation)
        await cluster.run(whole_deletion)

        assert not any(CLUSTER in tags for tags in (await tags_of_subnets(client)).values())


@pytest.mark.soak("aws")
@pytest.mark.parametrize("is_ours", [True, False])
async def test_only_the_reservation_that_the_cluster_made_is_released(
    client: AwsClient, *, is_ours: bool
) -> None:
    network = await Network.create(client, ipv6=True)
    await settle(client)
    cluster = StepsOf.byo(client, network)
    cluster.want(families=("IPv4", "IPv6"), overlay=False)
    of_services, another = (f"{network.block6[:-7]}00::{number}:0/112" for number in (1, 2))
    for cidr, tags in (
        (of_services, cluster.desired.tags() if is_ours else {"team": "a"}),
        (another, {}),
    ):
        await client.call(
            "ec2",
            "CreateSubnetCidrReservation",
            SubnetId=network.workers["a"],
            Cidr=cidr,
            ReservationType="explicit",
            **(
                {"TagSpecifications": specification("subnet-cidr-reservation", tags)}
                if tags
                else {}
            ),
        )
    await cluster.ensure(byo_steps)
    cluster.saved[keys.SERVICE_CIDR] = of_services

    await cluster.ensure(byo_delete_steps)

    left = await client.call("ec2", "GetSubnetCidrReservations", SubnetId=network.workers["a"])
    kept = [another] if is_ours else [of_services, another]
    assert sorted(each["Cidr"] for each in left["SubnetIpv6CidrReservations"]) == kept


@pytest.mark.soak("aws")
async def test_a_reservation_that_another_cluster_uses_is_kept_until_that_is_deleted(
    client: AwsClient,
) -> None:
    network = await Network.create(client, ipv6=True)
    await settle(client)
    one, other = (StepsOf.byo(client, network) for _ in range(2))
    other.want(technical_id=OTHER)
    for cluster in (one, other):
        cluster.want(families=("IPv4", "IPv6"), overlay=False)
        await cluster.ensure(byo_steps, service_range.steps)
    left: list[int] = []

    for cluster in (one, other):
        await cluster.ensure(byo_delete_steps)
        answer = await client.call(
            "ec2", "GetSubnetCidrReservations", SubnetId=network.workers["a"]
        )
        left.append(len(answer["SubnetIpv6CidrReservations"]))

    assert left == [1, 0]


@pytest.mark.soak("aws")
async def test_routes_to_deleted_pods_are_removed_only_if_the_operator_allows_it(
    cluster_client: Client, namespace: str, aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.create(client)
    subnet = network.workers["a"]
    there, gone = [await _interface(client, subnet) for _ in range(2)]
    await network.route(subnet, "100.64.1.0/24", NetworkInterfaceId=gone)
    await network.route(subnet, "100.64.2.0/24", NetworkInterfaceId=there)
    await network.route(subnet, "192.168.0.0/16", NetworkInterfaceId=gone)
    await client.call("ec2", "DeleteNetworkInterface", NetworkInterfaceId=gone)
    site = await aws_site(cluster_client, namespace, aws)
    context, saved = _context(site)
    obj = _infrastructure(site, network.config(group=await network.security_group()))
    usual, allowed = (
        AwsInfrastructure(AwsSettings(endpoint_url=aws.url, retry=QUICK, remove_pod_routes=allowed))
        for allowed in (False, True)
    )
    await usual.reconcile(context, obj)
    obj["status"] = copy.deepcopy(saved)  # a deletion forgets the removed routes
    aws.writes()

    await usual.delete(context, obj)
    left_alone = aws.writes()
    await allowed.delete(context, obj)

    assert "ec2 DeleteRoute" not in left_alone
    deleted = [call.parameters for call in aws.requests if call.operation == "DeleteRoute"]
    assert [(each["RouteTableId"], each["DestinationCidrBlock"]) for each in deleted] == [
        (network.tables[subnet], "100.64.1.0/24")
    ]
    taken = {str(call).replace(" ", ":") for call in aws.requests}
    assert taken - set(actions(Mode.BYO)) == {"ec2:DeleteRoute"}
    assert taken - set(actions(Mode.BYO, [Feature.POD_ROUTES])) == set()
    for actuator in (usual, allowed):
        await actuator.close()
    await site.clean_up()


async def _interface(client: AwsClient, subnet: str) -> str:
    answer = await client.call("ec2", "CreateNetworkInterface", SubnetId=subnet)
    name: str = answer["NetworkInterface"]["NetworkInterfaceId"]
    return name


def _infrastructure(site: AwsSite, config: JsonObject) -> JsonObject:
    return {
        "apiVersion": INFRASTRUCTURE.api_version,
        "kind": INFRASTRUCTURE.kind,
        "metadata": {"name": "web", "namespace": site.namespace},
        "spec": site.spec(config),
    }


def _context(site: AwsSite) -> tuple[Context, Status]:
    """Return an actuator's context for a Shoot without overlay, and the status that it saves."""
    saved: Status = {}

    async def progress(percent: int, text: str) -> None:
        del percent, text

    async def save(status: Status) -> None:
        saved.update(status)

    networking = {**SHOOT["spec"]["networking"], "providerConfig": {"overlay": {"enabled": False}}}
    context = Context(
        client=site.client,
        cluster=Cluster(site.namespace, shoot=Shoot({"spec": {"networking": networking}})),
        namespace=site.namespace,
        clock=SystemClock(),
        progress=progress,
        save=save,
    )
    return context, saved


async def _lost(aws: MortalAws, client: AwsClient) -> Flows:
    """Return a complete cluster in a user-provided network whose state was lost."""
    network = await Network.complete(client, zones=("a",))
    group = await network.security_group()
    cluster = Flows(aws, client, StepsOf.byo(client, network, group=group).desired)
    await cluster.run(creation)
    cluster.saved = {}
    return cluster
