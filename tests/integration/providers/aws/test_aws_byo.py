"""User-provided networks: spec 30 §4 and §7, with moto as AWS."""

import pytest

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.flow import FlowFailed, State
from pergola.flow.picture import Fate
from pergola.providers.aws import state as keys
from pergola.providers.aws.byo import byo_delete_steps, byo_steps
from pergola.providers.aws.control_plane.cloud_provider import cloud_controller_arguments
from pergola.providers.aws.control_plane.subnets import cloud_subnet
from pergola.providers.aws.desired import MARKER, ROLE_INTERNAL, ROLE_PUBLIC, Desired
from pergola.providers.aws.flows.delete import delete_steps
from pergola.providers.aws.flows.reconcile import reconcile_steps
from pergola.providers.aws.resources import byo_step_names as names
from pergola.providers.aws.resources import iam, key_pair
from pergola.providers.aws.status import provider_status
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import Network, everything, without_tags
from tests.support.aws.byo_clusters import CLUSTER, settle, tags_of_subnets
from tests.support.aws.steps import StepsOf


def status_of(cluster: StepsOf) -> JsonObject:
    return provider_status(cluster.desired, State(cluster.saved))


def subnets_in_status(cluster: StepsOf) -> dict[tuple[str, str], str]:
    found = status_of(cluster)["vpc"]["subnets"]
    return {(each["purpose"], each["zone"]): each["id"] for each in found}


# §4


async def test_pattern_2_creates_only_a_role_a_profile_a_key_pair_and_tags(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.complete(client)
    cluster = StepsOf.byo(client, network, group=await network.security_group())
    before = await settle(client)
    aws.writes()

    await cluster.ensure(byo_steps, iam.steps, key_pair.steps)

    assert set(aws.writes()) == {
        "iam CreateRole",
        "iam PutRolePolicy",
        "iam CreateInstanceProfile",
        "iam AddRoleToInstanceProfile",
        "ec2 ImportKeyPair",
        "ec2 CreateTags",
    }
    after = without_tags(await everything(client))
    assert {key: after.get(key) for key in before} == without_tags(before)
    assert {key.partition("/")[0] for key in after.keys() - before.keys()} == {
        "Roles",
        "RolePolicies",
        "InstanceProfiles",
        "KeyPairs",
    }


async def test_creation_and_deletion_in_pattern_2_restore_the_network(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.complete(client)
    cluster = StepsOf.byo(client, network, group=await network.security_group())
    before = await settle(client)
    aws.writes()

    await cluster.ensure(reconcile_steps)
    created = set(aws.writes())
    await cluster.ensure(reconcile_steps)
    again = aws.writes()
    await cluster.ensure(lambda desired: delete_steps(desired, State(cluster.saved)))

    assert created == {
        "iam CreateRole",
        "iam PutRolePolicy",
        "iam CreateInstanceProfile",
        "iam AddRoleToInstanceProfile",
        "ec2 ImportKeyPair",
        "ec2 CreateTags",
    }
    assert again == []
    assert set(aws.writes()) == {
        "iam RemoveRoleFromInstanceProfile",
        "iam DeleteInstanceProfile",
        "iam DeleteRolePolicy",
        "iam DeleteRole",
        "ec2 DeleteKeyPair",
        "ec2 DeleteTags",
    }
    assert without_tags(await everything(client)) == without_tags(before)


async def test_each_set_of_tags_is_written_with_one_call(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = StepsOf.byo(client, await Network.complete(client))
    cluster.want(overlay=False)
    aws.writes()

    await cluster.ensure(byo_steps)

    assert aws.writes() == ["ec2 CreateTags"] * 3


async def test_a_private_network_without_an_internet_gateway_is_accepted(client: AwsClient) -> None:
    network = await Network.create(client, zones=("a", "b"))
    cluster = StepsOf.byo(client, network)

    await cluster.ensure(byo_steps)

    assert subnets_in_status(cluster) == {
        ("nodes", "eu-west-1a"): network.workers["a"],
        ("nodes", "eu-west-1b"): network.workers["b"],
    }
    assert ["stay pending" in warning for warning in cluster.warnings] == [True]


async def test_a_second_run_writes_no_tag_again(aws: CorrectedAws, client: AwsClient) -> None:
    cluster = StepsOf.byo(client, await Network.complete(client))
    cluster.want(overlay=False)
    await cluster.ensure(byo_steps)
    saved = dict(cluster.saved)
    aws.writes()

    await cluster.ensure(byo_steps)

    assert aws.writes() == []
    assert cluster.saved == saved
    assert (await cluster.plan(byo_steps))[names.TAG].fate is Fate.KEEP


async def test_the_state_contains_ids_actual_ranges_and_suffixes(client: AwsClient) -> None:
    network = await Network.complete(client, zones=("a",))
    cluster = StepsOf.byo(client, network)

    await cluster.ensure(byo_steps)

    assert State(cluster.saved).under("Zones/eu-west-1a") == {
        keys.SUFFIX: "z0",
        keys.SUBNET_WORKERS: network.workers["a"],
        keys.SUBNET_WORKERS_CIDR: "10.180.0.0/24",
        keys.SUBNET_PUBLIC: network.public["a"],
        keys.SUBNET_PUBLIC_CIDR: "10.180.1.0/24",
        keys.SUBNET_INTERNAL: network.internal["a"],
        keys.SUBNET_INTERNAL_CIDR: "10.180.2.0/24",
    }


async def test_worker_subnets_are_not_tagged_if_the_operator_disables_that(
    client: AwsClient,
) -> None:
    network = await Network.complete(client, zones=("a", "b"))
    config = network.config()
    zone = config["networks"]["zones"][1]
    zone["internalSubnetID"] = zone["workersSubnetID"]
    cluster = StepsOf.byo(client, network)
    cluster.configure(networks=config["networks"])
    cluster.want(tag_worker_subnets=False)

    await cluster.ensure(byo_steps)

    tags = await tags_of_subnets(client)
    assert network.workers["a"] not in tags
    assert tags[network.workers["b"]] == {
        CLUSTER: "shared",
        ROLE_INTERNAL: "1",
        MARKER: ROLE_INTERNAL,
    }


async def test_missing_and_misplaced_subnets_are_refused_at_once(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.complete(client, zones=("a", "b"))
    config = network.config()
    config["networks"]["zones"][0]["workersSubnetID"] = "subnet-00000000"
    config["networks"]["zones"][1]["publicSubnetID"] = network.public["a"]
    cluster = StepsOf.byo(client, network)
    cluster.configure(networks=config["networks"])
    aws.writes()

    with pytest.raises(FlowFailed) as failed:
        await cluster.ensure(byo_steps)

    text = str(failed.value)
    assert "zones[0].workersSubnetID" in text
    assert "subnet-00000000" in text
    assert "zones[1].publicSubnetID" in text
    assert aws.writes() == []
    assert (await cluster.plan(byo_steps))[names.READ].fate is Fate.FAILED


async def test_a_subnet_that_is_not_visible_at_first_is_looked_up_again(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.create(client)
    aws.hide(2)
    new = await network.add_subnet("workers", "b")
    cluster = StepsOf.byo(client, network)

    await cluster.ensure(byo_steps)

    assert subnets_in_status(cluster)["nodes", "eu-west-1b"] == new


async def test_an_additional_zone_gets_its_own_suffix_and_tags(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.complete(client, zones=("a",))
    cluster = StepsOf.byo(client, network)
    await cluster.ensure(byo_steps)
    for role in ("workers", "public", "internal"):
        await network.add_subnet(role, "b")
    cluster.configure(networks=network.config()["networks"])
    aws.taken()

    await cluster.ensure(byo_steps)

    assert State(cluster.saved).get("Zones/eu-west-1b/Suffix") == "z1"
    tagged = {name for call in aws.requests if call.is_write for name in call.values("ResourceId")}
    assert tagged == {network.workers["b"], network.public["b"], network.internal["b"]}


# §7


async def test_without_subnets_for_load_balancers_workers_are_reported_and_services_disabled(
    client: AwsClient,
) -> None:
    network = await Network.create(client, zones=("a", "b"))
    cluster = StepsOf.byo(client, network)

    await cluster.ensure(byo_steps)

    status = status_of(cluster)
    assert cloud_subnet(status) == (network.workers["a"], "eu-west-1a")
    assert "--controllers=*,-service" in cloud_controller_arguments(status)


async def test_tagged_subnets_are_found_and_enable_services_again(
    client: AwsClient,
) -> None:
    network = await Network.create(client, zones=("a", "b"))
    cluster = StepsOf.byo(client, network)
    await cluster.ensure(byo_steps)
    subnet = await network.add_subnet("internal", "b", tags={CLUSTER: "shared", ROLE_INTERNAL: "1"})

    await cluster.ensure(byo_steps)

    status = status_of(cluster)
    assert subnets_in_status(cluster)["internal", "eu-west-1b"] == subnet
    assert cloud_controller_arguments(status) == ["--configure-cloud-routes=false"]
    (warning,) = cluster.warnings
    assert "only some zones have a subnet for internal load balancers" in warning
    assert "eu-west-1a have none; name internalSubnetID there" in warning


async def test_a_subnet_that_lost_its_tags_is_removed_from_the_status(client: AwsClient) -> None:
    network = await Network.create(client)
    cluster = StepsOf.byo(client, network)
    tags = {CLUSTER: "shared", ROLE_PUBLIC: "1"}
    await network.add_gateway()
    subnet = await network.add_subnet("public", "a", tags=tags)
    cluster.configure(networks=network.config(balancers=False)["networks"])
    await cluster.ensure(byo_steps)
    assert subnets_in_status(cluster)["public", "eu-west-1a"] == subnet

    await client.call("ec2", "DeleteTags", Resources=[subnet], Tags=[{"Key": ROLE_PUBLIC}])
    await cluster.ensure(byo_steps)

    assert subnets_in_status(cluster) == {("nodes", "eu-west-1a"): network.workers["a"]}


async def test_with_an_overlay_no_route_table_is_tagged(client: AwsClient) -> None:
    cluster = StepsOf.byo(client, await Network.complete(client))

    await cluster.ensure(byo_steps)

    assert not [name for name in await tags_of_subnets(client) if name.startswith("rtb-")]


async def test_without_an_overlay_a_table_shared_by_two_zones_is_tagged_with_one_call(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.create(client, zones=())
    for zone in ("a", "b"):
        answer = await client.call(
            "ec2",
            "CreateSubnet",
            VpcId=network.id,
            CidrBlock=f"10.180.{ord(zone) - 96}.0/24",
            AvailabilityZone=f"eu-west-1{zone}",
        )
        network.workers[zone] = answer["Subnet"]["SubnetId"]
    table = await network.add_table(*network.workers.values())
    cluster = StepsOf.byo(client, network)
    cluster.want(overlay=False, tag_worker_subnets=False)
    aws.writes()

    await cluster.ensure(byo_steps)

    assert aws.writes() == ["ec2 CreateTags"]
    assert await tags_of_subnets(client) == {table: {CLUSTER: "shared"}}
    assert dict(keys.in_zones(State(cluster.saved), keys.ROUTE_TABLE)) == {
        "eu-west-1a": table,
        "eu-west-1b": table,
    }


async def test_the_main_table_is_tagged_for_subnets_without_a_separate_table(
    client: AwsClient,
) -> None:
    network = await Network.create(client, zones=())
    answer = await client.call(
        "ec2",
        "CreateSubnet",
        VpcId=network.id,
        CidrBlock="10.180.1.0/24",
        AvailabilityZone="eu-west-1a",
    )
    network.workers["a"] = answer["Subnet"]["SubnetId"]
    cluster = StepsOf.byo(client, network)
    cluster.want(overlay=False)

    await cluster.ensure(byo_steps)

    main = await client.pages(
        "ec2",
        "DescribeRouteTables",
        "RouteTables",
        Filters=[
            {"Name": "association.main", "Values": ["true"]},
            {"Name": "vpc-id", "Values": [network.id]},
        ],
    )
    assert (await tags_of_subnets(client))[main[0]["RouteTableId"]] == {CLUSTER: "shared"}


async def test_with_ipv6_only_no_route_table_is_tagged(client: AwsClient) -> None:
    network = await Network.create(client, ipv6=True)
    await settle(client)
    cluster = StepsOf.byo(client, network)
    cluster.want(overlay=False, families=("IPv6",))

    await cluster.ensure(byo_steps)

    assert set(await tags_of_subnets(client)) == {network.workers["a"]}
    known = State(cluster.saved).get("Zones/eu-west-1a/SubnetWorkersIPv6CIDR")
    assert known == f"{network.block6[:-7]}00::/64"


async def test_a_user_provided_subnet_without_an_ipv6_range_is_refused_for_dual_stack(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = StepsOf.byo(client, await Network.create(client))
    cluster.want(families=("IPv4", "IPv6"), overlay=False)
    aws.writes()

    with pytest.raises(FlowFailed, match="has 0 IPv6 ranges"):
        await cluster.ensure(byo_steps)

    assert aws.writes() == []


async def test_the_tag_of_a_route_table_is_removed_when_the_overlay_is_enabled(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.create(client, zones=("a", "b"))
    mine, theirs = (network.tables[network.workers[zone]] for zone in ("a", "b"))
    await network.tag(theirs, **{CLUSTER: "shared"})
    cluster = StepsOf.byo(client, network)
    cluster.want(overlay=False)
    await cluster.ensure(byo_steps)
    assert {mine, theirs} <= (await tags_of_subnets(client)).keys()

    cluster.want(overlay=True)
    aws.writes()
    await cluster.ensure(byo_steps)

    tags = await tags_of_subnets(client)
    assert mine not in tags
    assert tags[theirs] == {CLUSTER: "shared"}
    assert aws.writes() == ["ec2 DeleteTags"]
    await cluster.ensure(byo_steps)
    assert aws.writes() == []


def test_created_subnets_are_left_alone(client: AwsClient) -> None:
    config = {"networks": {"vpc": {"cidr": "10.0.0.0/16"}, "zones": [{"name": "eu-west-1a"}]}}
    cluster = StepsOf.byo(client, Network(client, "vpc-1", "10.0"))
    cluster.configure(networks=config["networks"])
    desired: Desired = cluster.desired

    assert byo_steps(desired) == byo_delete_steps(desired) == []
