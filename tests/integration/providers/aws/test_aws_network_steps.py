"""Creation and reconciliation of networks, against moto (spec 30 §3, §4.2, §10.5, §13)."""

from collections import Counter
from typing import Final

import pytest

from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import tags_of
from pergola.flow import FlowFailed
from pergola.flow.picture import Fate
from pergola.providers.aws import state as keys
from pergola.providers.aws.flows.reconcile import network_steps
from pergola.providers.aws.resources import step_names as names
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import Network, everything, managed_config, tags_in
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
from tests.support.aws.steps import TECHNICAL_ID

REGION: Final = "eu-west-1"
ZONE: Final = f"{REGION}a"

# §3: must hold


async def test_an_empty_account_gets_exactly_the_resources_of_one_zone(
    aws: CorrectedAws, client: AwsClient
) -> None:
    await created(client)

    assert await count(client) == {
        "Vpcs": 1,
        "InternetGateways": 1,
        "DhcpOptions": 1,
        "Subnets": 3,
        "Addresses": 1,
        "NatGateways": 1,
        "RouteTables": 2,
    }
    assert Counter(aws.writes()) == {
        "ec2 CreateDhcpOptions": 1,
        "ec2 CreateVpc": 1,
        "ec2 ModifyVpcAttribute": 1,
        "ec2 AssociateDhcpOptions": 1,
        "ec2 RevokeSecurityGroupEgress": 1,
        "ec2 CreateInternetGateway": 1,
        "ec2 AttachInternetGateway": 1,
        "ec2 CreateSubnet": 3,
        "ec2 AllocateAddress": 1,
        "ec2 CreateNatGateway": 1,
        "ec2 CreateRouteTable": 2,
        "ec2 CreateRoute": 2,
        "ec2 AssociateRouteTable": 3,
    }


@pytest.mark.parametrize(("zones", "most"), [(("a",), 45), (("a", "b", "c"), 75)])
async def test_creation_takes_few_calls(
    aws: CorrectedAws, client: AwsClient, zones: tuple[str, ...], most: int
) -> None:
    of_others = 12  # security group, IAM and key pair of nodes

    await created(client, zones=zones)

    polls = ("ec2 DescribeNatGateways", "ec2 DescribeSubnets")
    assert sum(1 for call in aws.requests if str(call) not in polls) + of_others <= most
    assert sum(1 for call in aws.requests if call.operation == "DescribeNatGateways") <= 4


async def test_resources_have_the_names_connections_and_tags_that_clusters_expect(
    client: AwsClient,
) -> None:
    found = await created(client)
    state = found.saved

    world = await everything(client)
    assert {key: tags["Name"] for key, tags in tags_in(world).items() if CLUSTER_TAG in tags} == {
        f"Vpcs/{state['VPC']}": TECHNICAL_ID,
        f"DhcpOptions/{state['DHCPOptions']}": TECHNICAL_ID,
        f"InternetGateways/{state['InternetGateway']}": TECHNICAL_ID,
        f"RouteTables/{state['MainRouteTable']}": TECHNICAL_ID,
        f"RouteTables/{state[in_zone('ZoneRouteTable')]}": f"{TECHNICAL_ID}-private-{ZONE}",
        f"Subnets/{state[in_zone('SubnetWorkers')]}": f"{TECHNICAL_ID}-nodes-z0",
        f"Subnets/{state[in_zone('SubnetPrivateUtility')]}": f"{TECHNICAL_ID}-private-utility-z0",
        f"Subnets/{state[in_zone('SubnetPublicUtility')]}": f"{TECHNICAL_ID}-public-utility-z0",
        f"Addresses/{state[in_zone('NATGatewayElasticIP')]}": f"{TECHNICAL_ID}-eip-natgw-z0",
        f"NatGateways/{state[in_zone('NATGateway')]}": f"{TECHNICAL_ID}-natgw-z0",
    }
    public = tags_of(world[f"Subnets/{state[in_zone('SubnetPublicUtility')]}"])
    internal = tags_of(world[f"Subnets/{state[in_zone('SubnetPrivateUtility')]}"])
    assert public["kubernetes.io/role/elb"] == internal["kubernetes.io/role/internal-elb"] == "1"
    main = world[f"RouteTables/{state['MainRouteTable']}"]
    private = world[f"RouteTables/{state[in_zone('ZoneRouteTable')]}"]
    assert routes_of(main) == {"0.0.0.0/0": state["InternetGateway"]}
    assert routes_of(private) == {"0.0.0.0/0": state[in_zone("NATGateway")]}
    assert {a["SubnetId"] for a in main["Associations"]} == {state[in_zone("SubnetPublicUtility")]}
    assert {a["RouteTableAssociationId"] for a in private["Associations"]} == {
        state[in_zone("SubnetWorkersRouteTableAssoc")],
        state[in_zone("SubnetPrivateRouteTableAssoc")],
    }
    options = world[f"DhcpOptions/{state['DHCPOptions']}"]["DhcpConfigurations"]
    assert {o["Key"]: o["Values"][0]["Value"] for o in options} == {
        "domain-name": "eu-west-1.compute.internal",
        "domain-name-servers": "AmazonProvidedDNS",
    }
    address = world[f"Addresses/{state[in_zone('NATGatewayElasticIP')]}"]["PublicIp"]
    assert state["EgressCIDRs"] == f"{address}/32"
    group = world[f"SecurityGroups/{state['DefaultSecurityGroup']}"]
    assert (group["IpPermissions"], group["IpPermissionsEgress"]) == ([], [])


async def test_a_second_run_writes_nothing_and_reads_everything_once(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = await created(client, zones=("a", "b", "c"))
    before = dict(found.saved)
    aws.taken()

    await found.ensure(network_steps)

    # The role is requested separately only because the nodes' profile does not exist here.
    calls = [str(call) for call in aws.requests if str(call) != "iam GetRole"]
    assert aws.writes() == []
    assert len(calls) <= 14
    assert found.saved == before


async def test_the_plan_of_an_unchanged_network_keeps_everything(client: AwsClient) -> None:
    found = cluster(client, managed_config(REGION))
    planned = await found.plan(network_steps)
    await found.ensure(network_steps)

    after = await found.plan(network_steps)

    assert planned[names.VPC].fate is planned[names.nat(ZONE)].fate is Fate.CREATE
    assert {name: note for name, note in after.items() if note.fate is not Fate.KEEP} == {}


async def test_a_deleted_nat_gateway_is_recreated_with_the_same_elastic_ip(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = await created(client)
    before = dict(found.saved)
    old = before[in_zone(keys.NAT_GATEWAY)]
    await client.call("ec2", "DeleteNatGateway", NatGatewayId=old)
    aws.taken()

    await found.ensure(network_steps)

    new = await thing(found, "NatGateways", in_zone(keys.NAT_GATEWAY))
    assert new["NatGatewayId"] != old
    assert new["NatGatewayAddresses"][0]["AllocationId"] == before[in_zone(keys.ADDRESS)]
    table = await thing(found, "RouteTables", in_zone(keys.ROUTE_TABLE))
    assert routes_of(table)["0.0.0.0/0"] == new["NatGatewayId"]
    assert aws.writes() == ["ec2 CreateNatGateway", "ec2 ReplaceRoute"]


async def test_a_user_provided_elastic_ip_replaces_ours_which_is_released(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = await created(client)
    network = Network(client, "", "")
    given = await network.add_address()
    ours = found.saved[in_zone(keys.ADDRESS)]
    found.configure(networks=with_zone(found.raw, elasticIPAllocationID=given))
    aws.taken()

    await found.ensure(network_steps)

    assert aws.writes() == [
        "ec2 DeleteNatGateway",
        "ec2 ReleaseAddress",
        "ec2 CreateNatGateway",
        "ec2 ReplaceRoute",
    ]
    nat = await thing(found, "NatGateways", in_zone(keys.NAT_GATEWAY))
    assert nat["NatGatewayAddresses"][0]["AllocationId"] == given
    world = await everything(client)
    assert f"Addresses/{ours}" not in world
    assert CLUSTER_TAG not in tags_of(world[f"Addresses/{given}"])
    assert in_zone(keys.ADDRESS) not in found.saved


async def test_an_elastic_ip_that_the_user_withdraws_stays_allocated(
    client: AwsClient,
) -> None:
    given = await Network(client, "", "").add_address()
    config = managed_config(REGION)
    config["networks"] = with_zone(config, elasticIPAllocationID=given)
    found = cluster(client, config)
    await found.ensure(network_steps)
    assert in_zone(keys.ADDRESS) not in found.saved
    found.configure(networks=with_zone(config, elasticIPAllocationID=None))

    await found.ensure(network_steps)

    world = await everything(client)
    assert f"Addresses/{given}" in world
    nat = world[f"NatGateways/{found.saved[in_zone(keys.NAT_GATEWAY)]}"]
    assert nat["NatGatewayAddresses"][0]["AllocationId"] == found.saved[in_zone(keys.ADDRESS)]


async def test_zones_can_exchange_their_elastic_ips(client: AwsClient) -> None:
    network = Network(client, "", "")
    one, two = await network.add_address(), await network.add_address()
    config = managed_config(REGION, zones=("a", "b"))
    zones = config["networks"]["zones"]
    zones[0]["elasticIPAllocationID"], zones[1]["elasticIPAllocationID"] = one, two
    found = cluster(client, config)
    await found.ensure(network_steps)
    swapped = [
        {**zones[0], "elasticIPAllocationID": two},
        {**zones[1], "elasticIPAllocationID": one},
    ]
    found.configure(networks={**config["networks"], "zones": swapped})

    await found.ensure(network_steps)

    world = await everything(client)
    addresses = [
        world[f"NatGateways/{found.saved[in_zone(keys.NAT_GATEWAY, zone['name'])]}"]
        for zone in zones
    ]
    assert [nat["NatGatewayAddresses"][0]["AllocationId"] for nat in addresses] == [two, one]


async def test_a_missing_user_provided_elastic_ip_is_named(client: AwsClient) -> None:
    config = managed_config(REGION)
    config["networks"] = with_zone(config, elasticIPAllocationID="eipalloc-0123")

    with pytest.raises(FlowFailed, match="elastic IP eipalloc-0123 of zone eu-west-1a"):
        await cluster(client, config).ensure(network_steps)


async def test_foreign_tags_are_removed_unless_the_config_ignores_them(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = await created(client)
    subnet = found.saved[in_zone(keys.SUBNET_WORKERS)]
    network = Network(client, "", "")
    await network.tag(subnet, team="x")
    await network.tag(found.saved["VPC"], team="x")
    found.configure(ignoreTags={"keys": ["team"]})
    aws.taken()

    await found.ensure(network_steps)
    assert aws.writes() == []
    found.configure(ignoreTags={"keys": ["other"]})
    await found.ensure(network_steps)

    assert aws.writes() == ["ec2 DeleteTags"] * 2
    world = await everything(client)
    assert all("team" not in tags for tags in tags_in(world).values())


async def test_tags_of_older_clusters_are_recognized_and_rewritten(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = await created(client)
    world = await everything(client)
    old = [key.partition("/")[2] for key, tags in tags_in(world).items() if CLUSTER_TAG in tags]
    for name in old:
        await Network(client, "", "").tag(name, **{CLUSTER_TAG: "1"})
    aws.taken()

    await found.ensure(network_steps)

    assert aws.writes() == ["ec2 CreateTags"] * len(old)
    assert tags_in(await everything(client)) == tags_in(world)


async def test_routes_to_pods_in_the_table_of_a_zone_are_kept(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = await created(client)
    table = found.saved[in_zone(keys.ROUTE_TABLE)]
    interface = await client.call(
        "ec2", "CreateNetworkInterface", SubnetId=found.saved[in_zone(keys.SUBNET_WORKERS)]
    )
    pods = {
        "DestinationCidrBlock": "100.64.0.0/24",
        "NetworkInterfaceId": interface["NetworkInterface"]["NetworkInterfaceId"],
    }
    await client.call("ec2", "CreateRoute", RouteTableId=table, **pods)
    aws.taken()

    await found.ensure(network_steps)

    assert aws.writes() == []
    assert "100.64.0.0/24" in routes_of(
        await thing(found, "RouteTables", in_zone(keys.ROUTE_TABLE))
    )


async def test_a_route_to_another_target_is_replaced_once(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = await created(client)
    await client.call(
        "ec2",
        "ReplaceRoute",
        RouteTableId=found.saved[in_zone(keys.ROUTE_TABLE)],
        DestinationCidrBlock="0.0.0.0/0",
        GatewayId=found.saved[keys.INTERNET_GATEWAY],
    )
    aws.taken()

    await found.ensure(network_steps)

    assert aws.writes() == ["ec2 ReplaceRoute"]


async def test_parts_of_a_network_that_others_removed_are_restored(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = await created(client)
    workers = in_zone(keys.ASSOCIATION_WORKERS)
    await client.call("ec2", "DisassociateRouteTable", AssociationId=found.saved[workers])
    await client.call(
        "ec2",
        "ReplaceRouteTableAssociation",
        AssociationId=found.saved[in_zone(keys.ASSOCIATION_INTERNAL)],
        RouteTableId=found.saved[keys.MAIN_ROUTE_TABLE],
    )
    await client.call(
        "ec2",
        "AuthorizeSecurityGroupIngress",
        GroupId=found.saved[keys.DEFAULT_SECURITY_GROUP],
        IpPermissions=[{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}],
    )
    await client.call(
        "ec2", "ModifyVpcAttribute", VpcId=found.saved[keys.VPC], EnableDnsSupport={"Value": False}
    )
    aws.taken()

    planned = await found.plan(network_steps)
    await found.ensure(network_steps)

    assert sorted(aws.writes()) == [
        "ec2 AssociateRouteTable",
        "ec2 ModifyVpcAttribute",
        "ec2 ReplaceRouteTableAssociation",
        "ec2 RevokeSecurityGroupIngress",
    ]
    assert {name for name, note in planned.items() if note.fate is not Fate.KEEP} == {
        names.VPC,
        names.DEFAULT_SECURITY_GROUP,
        names.associations(ZONE),
    }
    table = await thing(found, "RouteTables", in_zone(keys.ROUTE_TABLE))
    assert len(table["Associations"]) == 2


async def test_duplicates_with_the_same_tags_are_refused_and_nothing_is_deleted(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = await created(client)
    table = await client.call("ec2", "CreateRouteTable", VpcId=found.saved["VPC"])
    second = table["RouteTable"]["RouteTableId"]
    await Network(client, "", "").tag(second, **{CLUSTER_TAG: "owned", "Name": TECHNICAL_ID})
    first = found.saved.pop(keys.MAIN_ROUTE_TABLE)
    aws.taken()

    with pytest.raises(FlowFailed, match=f"multiple matches: {', '.join(sorted((first, second)))}"):
        await found.ensure(network_steps)

    assert aws.writes() == []


async def test_resources_missing_in_the_state_are_found_by_their_tags(
    aws: CorrectedAws, client: AwsClient
) -> None:
    found = await created(client, zones=("a", "b"))
    before = dict(found.saved)
    found.saved = {}
    aws.taken()

    await found.ensure(network_steps)

    assert aws.writes() == []
    assert found.saved == before
