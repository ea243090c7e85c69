"""Networks in existing VPCs, private ones, with IPv6, and with faults (spec 30 §3.4-3.6, §4.2)."""

import re
from typing import Final

import pytest

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import tags_of
from pergola.flow import FlowFailed
from pergola.flow.picture import Fate
from pergola.providers.aws import state as keys
from pergola.providers.aws.flows.reconcile import network_steps
from pergola.providers.aws.resources import dhcp_options, ipv6_block, vpc
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.subnets.ipv6_ranges import part, places_in
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import Network, everything, managed_config, without_tags
from tests.support.aws.networks import (
    CLUSTER_TAG,
    cluster,
    count,
    created,
    in_zone,
    routes_of,
    thing,
    with_zone,
)
from tests.support.aws.steps import TECHNICAL_ID, StepsOf
from tests.support.documented.symptoms import symptom

REGION: Final = "eu-west-1"
ZONE: Final = f"{REGION}a"
DUAL: Final = ("IPv4", "IPv6")


async def in_existing_vpc(client: AwsClient, *, public: bool = True, ipv6: bool = False) -> StepsOf:
    """Return a cluster in a VPC without subnets; with an internet gateway if it is public."""
    network = await Network.create(client, zones=(), ipv6=ipv6)
    if public:
        await network.add_gateway()
    config = managed_config(REGION, vpc=network.id, public=public)
    return cluster(client, config, network=network)


def endpoints(config: JsonObject, *services: str) -> JsonObject:
    """Return the networks of a config, with gateway endpoints."""
    networks = config["networks"]
    return {**networks, "vpc": {**networks["vpc"], "gatewayEndpoints": list(services)}}


# §3.4: a VPC that exists


async def test_subnets_are_created_in_an_existing_vpc_which_is_not_changed(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = await in_existing_vpc(client)
    before = await everything(client)

    await found.ensure(network_steps)

    assert await count(client) == {"Subnets": 3, "RouteTables": 2, "Addresses": 1, "NatGateways": 1}
    after = await everything(client)
    assert {key: after[key] for key in before} == before
    assert found.saved[keys.INTERNET_GATEWAY] == found.network.gateway
    table = await thing(found, "RouteTables", keys.MAIN_ROUTE_TABLE)
    assert routes_of(table) == {"0.0.0.0/0": found.network.gateway}
    aws.taken()
    await found.ensure(network_steps)
    assert aws.writes() == []


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ({"dns": False}, "enableDnsHostnames is off"),
        ({"dhcp": False}, 'domain-name is ""'),
        ({"public": False}, "no attached internet gateway found for VPC vpc-"),
    ],
)
async def test_an_unsuitable_vpc_is_refused(
    aws: CorrectedAws, client: AwsClient, made: dict[str, bool], message: str
) -> None:
    network = await Network.create(
        client, zones=(), dns=made.get("dns", True), dhcp=made.get("dhcp", True)
    )
    if made.get("public", True):
        await network.add_gateway()
    found = cluster(client, managed_config(REGION, vpc=network.id), network=network)
    aws.taken()

    with pytest.raises(FlowFailed, match=message):
        await found.ensure(network_steps)

    assert "ec2 CreateNatGateway" not in aws.writes()


async def test_a_missing_vpc_is_named(aws: CorrectedAws, client: AwsClient) -> None:
    found = cluster(client, managed_config(REGION, vpc="vpc-0123"))

    with pytest.raises(FlowFailed, match="VPC vpc-0123 has not been found in eu-west-1") as seen:
        await found.ensure(network_steps)
    assert re.search(symptom("The VPC is not found"), str(seen.value))

    assert aws.writes() == []


# §4.1, §4.2: patterns and the steps that they skip


async def test_a_private_network_reaches_only_its_endpoints(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = await in_existing_vpc(client, public=False)
    found.configure(networks=endpoints(found.raw, "s3", "dynamodb"))
    aws.taken()

    await found.ensure(network_steps)

    assert await count(client) == {"Subnets": 2, "RouteTables": 1, "VpcEndpoints": 2}
    forbidden = ("AllocateAddress", "CreateNatGateway", "CreateInternetGateway")
    assert not [call for call in aws.writes() if call.endswith(forbidden)]
    table = await thing(found, "RouteTables", in_zone(keys.ROUTE_TABLE))
    assert routes_of(table) == {}
    assert keys.MAIN_ROUTE_TABLE not in found.saved
    for service in ("s3", "dynamodb"):
        endpoint = await thing(found, "VpcEndpoints", keys.endpoint_key(service))
        assert endpoint["ServiceName"] == f"com.amazonaws.eu-west-1.{service}"
        assert endpoint["RouteTableIds"] == [table["RouteTableId"]]
        assert tags_of(endpoint)["Name"] == f"{TECHNICAL_ID}-gw-{service}"
    await found.ensure(network_steps)
    assert aws.writes() == []


async def test_endpoints_that_are_no_longer_desired_are_deleted_and_foreign_ones_are_kept(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = await in_existing_vpc(client, public=False)
    of_user = await found.network.add_endpoint("s3")
    found.configure(networks=endpoints(found.raw, "s3"))
    await found.ensure(network_steps)
    ours = found.saved[keys.endpoint_key("s3")]
    found.configure(networks=endpoints(found.raw, "dynamodb"))
    aws.taken()

    await found.ensure(network_steps)

    assert aws.writes() == [
        "ec2 DeleteVpcEndpoints",
        "ec2 CreateVpcEndpoint",
        "ec2 ModifyVpcEndpoint",
    ]
    world = await everything(client)
    assert f"VpcEndpoints/{ours}" not in world
    assert f"VpcEndpoints/{of_user}" in world
    assert keys.endpoint_key("s3") not in found.saved


async def test_the_table_of_a_new_zone_is_added_to_the_endpoints(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = await created(client)
    found.configure(networks=endpoints(found.raw, "s3"))
    await found.ensure(network_steps)
    before = dict(found.saved)
    two = managed_config(REGION, zones=("a", "b"))
    found.configure(networks=endpoints(two, "s3"))
    aws.taken()

    await found.ensure(network_steps)

    assert before.items() <= {**found.saved, keys.EGRESS_CIDRS: before[keys.EGRESS_CIDRS]}.items()
    assert found.saved[in_zone(keys.SUFFIX, f"{REGION}b")] == "z1"
    assert aws.writes().count("ec2 ModifyVpcEndpoint") == 1
    endpoint = await thing(found, "VpcEndpoints", keys.endpoint_key("s3"))
    assert endpoint["RouteTableIds"] == [
        found.saved[in_zone(keys.ROUTE_TABLE, zone)] for zone in (ZONE, f"{REGION}b")
    ]


@pytest.mark.soak("aws")
async def test_a_zone_with_a_new_public_range_gets_a_nat_gateway(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = await in_existing_vpc(client, public=False)
    await found.ensure(network_steps)
    await found.network.add_gateway()
    found.configure(networks=with_zone(found.raw, public="10.180.1.0/24"))
    aws.taken()

    await found.ensure(network_steps)

    assert sorted(aws.writes()) == [
        "ec2 AllocateAddress",
        "ec2 AssociateRouteTable",
        "ec2 CreateNatGateway",
        "ec2 CreateRoute",
        "ec2 CreateRoute",
        "ec2 CreateRouteTable",
        "ec2 CreateSubnet",
    ]


@pytest.mark.soak("aws")
async def test_nothing_is_created_in_user_provided_subnets(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.complete(client, zones=("a",))
    await network.tag(network.nats["a"], **{CLUSTER_TAG: "shared"})
    found = cluster(client, network.config(), network=network)
    before = await everything(client)
    aws.taken()

    await found.ensure(network_steps)

    assert aws.writes() == []
    after = await everything(client)
    assert without_tags(after).keys() == without_tags(before).keys()
    nat = after[f"NatGateways/{network.nats['a']}"]["NatGatewayAddresses"][0]
    assert found.saved == {keys.VPC: network.id, keys.EGRESS_CIDRS: f"{nat['PublicIp']}/32"}


@pytest.mark.soak("aws")
async def test_all_resources_of_a_removed_zone_are_deleted(client: AwsClient) -> None:
    found = await created(client, zones=("a", "b"))
    one = await count(client)
    networks = found.raw["networks"]
    found.configure(networks={**networks, "zones": networks["zones"][:1]})
    planned = (await found.plan(network_steps))[names.REMOVED_ZONES]

    await found.ensure(network_steps)

    assert planned.fate is Fate.DELETE
    left = await count(client)
    assert (one["Subnets"], left["Subnets"]) == (6, 3)
    assert (one["NatGateways"], left["NatGateways"]) == (2, 1)
    assert (one["Addresses"], left["Addresses"]) == (2, 1)
    assert (one["RouteTables"], left["RouteTables"]) == (3, 2)
    assert not [key for key in found.saved if f"{REGION}b" in key and found.saved[key]]
    assert found.saved[keys.EGRESS_CIDRS].count("/32") == 1


# §3.6, §10.5: IPv6


@pytest.mark.soak("aws")
async def test_a_dual_stack_cluster_gets_ipv6_everywhere(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = await created(client, families=DUAL)
    state = found.saved

    world = await everything(client)
    assert await places_of(found) == [0, 1, 2]
    workers = world[f"Subnets/{state[in_zone(keys.SUBNET_WORKERS)]}"]
    assert workers["AssignIpv6AddressOnCreation"]
    assert not workers.get("EnableDns64")
    nat, gateway = state[in_zone(keys.NAT_GATEWAY)], state[keys.EGRESS_ONLY_GATEWAY]
    assert routes_of(world[f"RouteTables/{state[in_zone(keys.ROUTE_TABLE)]}"]) == {
        "0.0.0.0/0": nat,
        "::/0": gateway,
        "64:ff9b::/96": nat,
    }
    assert routes_of(world[f"RouteTables/{state[keys.MAIN_ROUTE_TABLE]}"]) == {
        "0.0.0.0/0": state[keys.INTERNET_GATEWAY],
        "::/0": state[keys.INTERNET_GATEWAY],
    }
    assert state[keys.SERVICE_CIDR] == part(state[keys.VPC_IPV6_BLOCK], 108, 1)
    aws.taken()
    await found.ensure(network_steps)
    assert aws.writes() == []


@pytest.mark.soak("aws")
async def test_an_ipv6_only_cluster_gets_nodes_without_ipv4(
    aws: CorrectedAws, client: AwsClient
) -> None:
    config = managed_config(REGION)
    config["networks"] = with_zone(config, workers=None)
    found = cluster(client, config, families=("IPv6",))

    await found.ensure(network_steps)

    workers = await thing(found, "Subnets", in_zone(keys.SUBNET_WORKERS))
    options = workers["PrivateDnsNameOptionsOnLaunch"]
    assert workers["Ipv6Native"]
    assert workers["EnableDns64"]
    assert workers["AssignIpv6AddressOnCreation"]
    assert options["EnableResourceNameDnsAAAARecord"]
    assert options["HostnameType"] == "resource-name"
    public = await thing(found, "Subnets", in_zone(keys.SUBNET_PUBLIC))
    assert (public["CidrBlock"], public["Ipv6Native"]) == ("10.180.1.0/24", False)
    aws.taken()
    await found.ensure(network_steps)
    assert aws.writes() == []


@pytest.mark.soak("aws")
async def test_a_cluster_that_enables_ipv6_later_keeps_its_subnets(client: AwsClient) -> None:
    found = await created(client)
    before = dict(found.saved)
    found.want(families=DUAL)

    await found.ensure(network_steps)

    assert before.items() <= found.saved.items()
    workers = await thing(found, "Subnets", in_zone(keys.SUBNET_WORKERS))
    assert workers["Ipv6CidrBlockAssociationSet"]
    assert workers["AssignIpv6AddressOnCreation"]


async def places_of(found: StepsOf) -> list[int]:
    """Return the places of the worker, internal and public subnets in the VPC's IPv6 block."""
    world = await everything(found.client)
    subnets = (keys.SUBNET_WORKERS, keys.SUBNET_INTERNAL, keys.SUBNET_PUBLIC)
    described = [world[f"Subnets/{found.saved[in_zone(key)]}"] for key in subnets]
    ranges = [each["Ipv6CidrBlockAssociationSet"][0]["Ipv6CidrBlock"] for each in described]
    block = found.saved[keys.VPC_IPV6_BLOCK]
    places = [part(block, 64, place) for place in range(places_in(block))]
    return [places.index(each) for each in ranges]


@pytest.mark.soak("aws")
async def test_occupied_ipv6_ranges_are_skipped(client: AwsClient) -> None:
    found = await in_existing_vpc(client, ipv6=True)
    found.want(families=DUAL)
    await found.network.add_egress_only_gateway()
    await found.network.add_subnet("workers", "a", cidr="10.180.200.0/24")

    await found.ensure(network_steps)

    assert await places_of(found) == [3, 1, 2]


@pytest.mark.soak("aws")
async def test_ipv6_ranges_that_were_taken_in_the_meantime_are_skipped(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = cluster(client, managed_config(REGION), families=DUAL)
    aws.fail("CreateSubnet", "InvalidSubnet.Conflict", message="conflicts with another subnet")

    await found.ensure(network_steps)

    places = await places_of(found)
    assert places.count(3) == 1
    assert len(set(places)) == 3


@pytest.mark.soak("aws")
async def test_an_occupied_ipv4_range_is_reported(client: AwsClient) -> None:
    found = await in_existing_vpc(client, ipv6=True)
    found.want(families=DUAL)
    await found.network.add_egress_only_gateway()
    await found.network.add_subnet("workers", "a")

    with pytest.raises(FlowFailed, match=r"InvalidSubnet\.Conflict.*10\.180\.0\.0/24") as seen:
        await found.ensure(network_steps)
    assert re.search(symptom("The ranges of subnets overlap"), str(seen.value))


@pytest.mark.soak("aws")
async def test_the_ipv6_block_can_come_from_a_pool(aws: CorrectedAws, client: AwsClient) -> None:
    aws.gaps.pools.known.add("ipam-pool-1")
    config = managed_config(REGION)
    pool = {"id": "ipam-pool-1", "cidrBlock": "2001:db8:0:100::/56"}
    config["networks"]["vpc"]["ipv6IpamPool"] = pool
    found = cluster(client, config, families=DUAL)

    await found.ensure(dhcp_options.steps, vpc.steps, ipv6_block.steps)

    assert found.saved[keys.VPC_IPV6_BLOCK] == "2001:db8:0:100::/56"


@pytest.mark.soak("aws")
async def test_an_existing_vpc_needs_an_egress_only_gateway_for_ipv6(client: AwsClient) -> None:
    found = await in_existing_vpc(client, ipv6=True)
    found.want(families=DUAL)

    with pytest.raises(FlowFailed, match="no egress-only internet gateway found for VPC vpc-"):
        await found.ensure(network_steps)


@pytest.mark.soak("aws")
async def test_the_range_of_services_is_reserved_once_and_kept(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.create(client, zones=("a", "b"), ipv6=True)
    found = cluster(client, network.config(), families=DUAL, network=network)
    aws.taken()
    await found.ensure(network_steps)
    assert aws.writes() == ["ec2 CreateSubnetCidrReservation"]
    kept = found.saved.pop(keys.SERVICE_CIDR)

    await found.ensure(network_steps)
    assert found.saved[keys.SERVICE_CIDR] == kept
    found.saved[keys.SERVICE_CIDR] = "fd00::/108"
    await found.ensure(network_steps)

    assert found.saved[keys.SERVICE_CIDR] == "fd00::/108"
    assert aws.writes() == []


# Failures


@pytest.mark.soak("aws")
async def test_a_failed_nat_gateway_is_reported_and_replaced(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = cluster(client, managed_config(REGION))
    aws.fail_nats()

    with pytest.raises(
        FlowFailed, match=r"NAT gateway nat-\w+ is failed.*another one will be created"
    ):
        await found.ensure(network_steps)
    failed = found.saved.get(in_zone(keys.NAT_GATEWAY))
    aws.taken()
    await found.ensure(network_steps)

    assert not failed
    assert aws.writes() == ["ec2 DeleteNatGateway", "ec2 CreateNatGateway", "ec2 CreateRoute"]
    assert found.saved[keys.EGRESS_CIDRS].endswith("/32")


@pytest.mark.soak("aws")
async def test_new_resources_may_be_invisible_for_a_while(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = cluster(client, managed_config(REGION))
    aws.hide(2)

    await found.ensure(network_steps)
    aws.taken()
    await found.ensure(network_steps)

    assert aws.writes() == []
    assert max((await count(client)).values()) == 3


@pytest.mark.soak("aws")
@pytest.mark.parametrize(
    "operation", ["CreateVpc", "CreateSubnet", "AllocateAddress", "CreateNatGateway"]
)
async def test_resources_are_found_again_if_the_answer_to_their_creation_was_lost(
    aws: CorrectedAws, client: AwsClient, operation: str
) -> None:
    found = cluster(client, managed_config(REGION))
    aws.lose_answer(operation)

    with pytest.raises(FlowFailed):
        await found.ensure(network_steps)
    await found.ensure(network_steps)

    assert await count(client) == {
        "Vpcs": 1,
        "DhcpOptions": 1,
        "InternetGateways": 1,
        "Subnets": 3,
        "RouteTables": 2,
        "Addresses": 1,
        "NatGateways": 1,
    }
