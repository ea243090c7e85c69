"""Our tests correct the behaviour of moto (spec 30 §12)."""

from ipaddress import IPv6Network

import pytest

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import (
    CloudError,
    CredentialsInvalid,
    DependencyProblem,
    NotFound,
    QuotaExceeded,
    Unreachable,
)
from pergola.sandbox.aws.answers import Call
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.gaps import PREFIX_LIST
from pergola.sandbox.aws.world import Network, everything, managed_config, tags_in, without_tags


async def nat_of(client: AwsClient, name: str) -> JsonObject:
    answer = await client.call("ec2", "DescribeNatGateways", NatGatewayIds=[name])
    found: JsonObject = answer["NatGateways"][0]
    return found


async def with_public_subnet(client: AwsClient) -> Network:
    network = await Network.create(client)
    await network.add_gateway()
    await network.add_subnet("public", "a")
    return network


async def test_a_nat_gateway_is_pending_then_available_with_its_address(client: AwsClient) -> None:
    network = await with_public_subnet(client)

    nat = await network.add_nat("a")
    first, second = await nat_of(client, nat), await nat_of(client, nat)

    assert (first["State"], second["State"]) == ("pending", "available")
    assert "PublicIp" not in first["NatGatewayAddresses"][0]
    assert second["NatGatewayAddresses"][0]["PublicIp"]


async def test_a_nat_gateway_blocks_its_dependencies_until_it_is_deleted(
    client: AwsClient,
) -> None:
    network = await with_public_subnet(client)
    nat = await network.add_nat("a")
    address = (await nat_of(client, nat))["NatGatewayAddresses"][0]["AllocationId"]
    await client.call("ec2", "DeleteNatGateway", NatGatewayId=nat)

    refused: list[CloudError] = []
    for operation, parameters in (
        ("DeleteSubnet", {"SubnetId": network.public["a"]}),
        ("ReleaseAddress", {"AllocationId": address}),
        ("DetachInternetGateway", {"InternetGatewayId": network.gateway, "VpcId": network.id}),
    ):
        with pytest.raises(DependencyProblem) as caught:
            await client.call("ec2", operation, **parameters)
        refused.append(caught.value)
    states = [(await nat_of(client, nat))["State"] for _ in range(2)]
    await client.call("ec2", "ReleaseAddress", AllocationId=address)
    await client.call("ec2", "DeleteSubnet", SubnetId=network.public["a"])

    assert [error.code for error in refused] == [
        "DependencyViolation",
        "InvalidIPAddress.InUse",
        "DependencyViolation",
    ]
    assert states == ["deleting", "deleted"]


async def test_an_elastic_ip_of_a_deleted_nat_gateway_can_be_used_again(client: AwsClient) -> None:
    network = await with_public_subnet(client)
    nat = await network.add_nat("a")
    address = (await nat_of(client, nat))["NatGatewayAddresses"][0]["AllocationId"]
    await client.call("ec2", "DeleteNatGateway", NatGatewayId=nat)
    await nat_of(client, nat)
    await nat_of(client, nat)

    answer = await client.call(
        "ec2", "CreateNatGateway", SubnetId=network.public["a"], AllocationId=address
    )
    again = answer["NatGateway"]["NatGatewayId"]
    await nat_of(client, again)

    assert (await nat_of(client, again))["State"] == "available"


async def test_nat_gateways_are_filtered_by_their_current_state(client: AwsClient) -> None:
    network = await with_public_subnet(client)
    await network.add_nat("a")
    available = [{"Name": "state", "Values": ["available"]}]

    first = await client.call("ec2", "DescribeNatGateways", Filter=available)
    second = await client.call("ec2", "DescribeNatGateways", Filter=available)

    assert (len(first["NatGateways"]), len(second["NatGateways"])) == (0, 1)


async def test_nat_gateways_are_found_by_their_tags(client: AwsClient) -> None:
    network = await Network.complete(client, zones=("a", "b"))
    tags = [{"Key": "Name", "Value": "one"}]
    await client.call("ec2", "CreateTags", Resources=[network.nats["b"]], Tags=tags)
    tagged = [{"Name": "tag:Name", "Values": ["one"]}]

    found = await client.call("ec2", "DescribeNatGateways", Filter=tagged)

    assert [each["NatGatewayId"] for each in found["NatGateways"]] == [network.nats["b"]]


async def test_a_nat_gateway_can_fail(aws: CorrectedAws, client: AwsClient) -> None:
    network = await with_public_subnet(client)
    aws.fail_nats()

    nat = await network.add_nat("a")

    assert (await nat_of(client, nat))["State"] == "failed"


async def test_subnets_blocks_and_file_systems_are_not_ready_at_once(client: AwsClient) -> None:
    network = await Network.create(client, ipv6=True)
    group = await network.security_group()
    system = await network.file_system("a", group=group)

    subnets = [
        (await client.call("ec2", "DescribeSubnets", SubnetIds=[network.workers["a"]]))["Subnets"]
        for _ in range(2)
    ]
    vpcs = [
        (await client.call("ec2", "DescribeVpcs", VpcIds=[network.id]))["Vpcs"] for _ in range(2)
    ]
    systems = [
        (await client.call("efs", "DescribeFileSystems", FileSystemId=system))["FileSystems"]
        for _ in range(2)
    ]

    assert [subnet[0]["State"] for subnet in subnets] == ["pending", "available"]
    assert [
        vpc[0]["Ipv6CidrBlockAssociationSet"][0]["Ipv6CidrBlockState"]["State"] for vpc in vpcs
    ] == ["associating", "associated"]
    assert [each[0]["LifeCycleState"] for each in systems] == ["creating", "available"]


async def test_the_ipv6_range_of_a_subnet_is_associated_and_inside_the_block(
    client: AwsClient,
) -> None:
    network = await Network.create(client, ipv6=True)

    answer = await client.call("ec2", "DescribeSubnets", SubnetIds=[network.workers["a"]])

    block = answer["Subnets"][0]["Ipv6CidrBlockAssociationSet"][0]
    assert block["Ipv6CidrBlockState"] == {"State": "associated"}
    assert IPv6Network(block["Ipv6CidrBlock"]).subnet_of(IPv6Network(network.block6))


async def test_a_subnet_cannot_be_associated_twice(client: AwsClient) -> None:
    network = await Network.create(client)
    subnet = network.workers["a"]

    with pytest.raises(CloudError) as caught:
        await client.call(
            "ec2", "AssociateRouteTable", SubnetId=subnet, RouteTableId=network.tables[subnet]
        )

    assert caught.value.code == "Resource.AlreadyAssociated"


async def test_egress_only_gateways_are_found_by_their_tags(client: AwsClient) -> None:
    network = await Network.create(client, ipv6=True)
    first, second = [await network.add_egress_only_gateway() for _ in range(2)]
    await network.tag(second, colour="red")

    found = await client.pages(
        "ec2",
        "DescribeEgressOnlyInternetGateways",
        "EgressOnlyInternetGateways",
        Filters=[{"Name": "tag:colour", "Values": ["red"]}],
    )

    assert [each["EgressOnlyInternetGatewayId"] for each in found] == [second] != [first]


async def test_gateway_endpoints_add_routes_to_their_tables(client: AwsClient) -> None:
    network = await Network.create(client)
    table = network.tables[network.workers["a"]]

    endpoint = await network.add_endpoint("s3", table)
    found = await client.call("ec2", "DescribeRouteTables", RouteTableIds=[table])

    routes = found["RouteTables"][0]["Routes"]
    assert [r["GatewayId"] for r in routes if r.get("DestinationPrefixListId") == PREFIX_LIST] == [
        endpoint
    ]


async def test_a_vpc_can_get_its_ipv6_block_from_a_pool(
    aws: CorrectedAws, client: AwsClient
) -> None:
    asked = {"CidrBlock": "10.0.0.0/16", "Ipv6IpamPoolId": "ipam-pool-1"}
    with pytest.raises(NotFound):
        await client.call("ec2", "CreateVpc", **asked, Ipv6NetmaskLength=56)
    aws.gaps.pools.known.add("ipam-pool-1")

    answer = await client.call("ec2", "CreateVpc", **asked, Ipv6CidrBlock="2001:db8:0:100::/56")

    found = await client.call("ec2", "DescribeVpcs", VpcIds=[answer["Vpc"]["VpcId"]])
    block = found["Vpcs"][0]["Ipv6CidrBlockAssociationSet"][0]
    assert block["Ipv6CidrBlock"] == "2001:db8:0:100::/56"


async def test_new_resources_are_invisible_for_some_reads(
    aws: CorrectedAws, client: AwsClient
) -> None:
    aws.hide(2)
    vpc = (await client.call("ec2", "CreateVpc", CidrBlock="10.0.0.0/16"))["Vpc"]["VpcId"]
    await client.call("iam", "CreateRole", RoleName="r", AssumeRolePolicyDocument="{}")
    listed = await client.pages("ec2", "DescribeVpcs", "Vpcs")
    with pytest.raises(NotFound):
        await client.call("ec2", "DescribeVpcs", VpcIds=[vpc])
    for _ in range(2):
        with pytest.raises(NotFound):
            await client.call("iam", "GetRole", RoleName="r")

    assert vpc not in [each["VpcId"] for each in listed]
    assert (await client.call("ec2", "DescribeVpcs", VpcIds=[vpc]))["Vpcs"]
    assert (await client.call("iam", "GetRole", RoleName="r"))["Role"]


async def test_calls_fail_in_the_same_way_as_in_aws(aws: CorrectedAws, client: AwsClient) -> None:
    aws.throttle("DescribeVpcs", times=2)
    aws.exhaust("CreateVpc")
    await client.pages("ec2", "DescribeVpcs", "Vpcs")
    with pytest.raises(QuotaExceeded, match="VpcLimitExceeded"):
        await client.call("ec2", "CreateVpc", CidrBlock="10.0.0.0/16")
    aws.expire()
    with pytest.raises(CredentialsInvalid):
        await client.pages("efs", "DescribeFileSystems", "FileSystems")
    aws.heal()

    assert await client.pages("efs", "DescribeFileSystems", "FileSystems") == []
    assert aws.taken().count("ec2 DescribeVpcs") == 3


async def test_the_answer_to_a_successful_call_can_be_lost(
    aws: CorrectedAws, client: AwsClient
) -> None:
    aws.lose_answer("CreateVpc")

    with pytest.raises(Unreachable) as caught:
        await client.call("ec2", "CreateVpc", CidrBlock="10.9.0.0/16")

    assert caught.value.may_have_happened
    vpcs = await client.pages("ec2", "DescribeVpcs", "Vpcs")
    assert [vpc["CidrBlock"] for vpc in vpcs].count("10.9.0.0/16") == 1


async def test_hooks_run_before_and_after_a_call(aws: CorrectedAws, client: AwsClient) -> None:
    network = await Network.create(client)
    seen: list[str] = []

    async def note(call: Call) -> None:
        seen.append(f"{call.operation} {call.values('SubnetId')}")

    aws.before("DescribeSubnets", note)
    aws.after("DescribeSubnets", note)
    subnet = network.workers["a"]
    for _ in range(2):
        await client.call("ec2", "DescribeSubnets", SubnetIds=[subnet])

    assert seen == [f"DescribeSubnets {[subnet]}"] * 2


async def test_new_load_balancers_have_the_defaults_of_aws(client: AwsClient) -> None:
    network = await Network.create(client, zones=("a",))
    subnets = [network.workers["a"]]
    listener = {"Protocol": "TCP", "LoadBalancerPort": 80, "InstancePort": 30080}

    await client.call(
        "elb",
        "CreateLoadBalancer",
        LoadBalancerName="classic",
        Listeners=[listener],
        Subnets=subnets,
    )
    await client.call(
        "elbv2", "CreateLoadBalancer", Name="network", Type="network", Subnets=subnets
    )

    [classic] = await client.pages("elb", "DescribeLoadBalancers", "LoadBalancerDescriptions")
    assert classic["HealthCheck"] == {
        "Target": "TCP:30080",
        "Interval": 30,
        "Timeout": 5,
        "UnhealthyThreshold": 2,
        "HealthyThreshold": 10,
    }
    [other] = await client.pages("elbv2", "DescribeLoadBalancers", "LoadBalancers")
    assert other["Scheme"] == "internet-facing"


async def test_an_instance_has_the_security_groups_of_its_first_interface(
    client: AwsClient,
) -> None:
    network = await Network.create(client)
    group = await network.security_group()
    interface = {"DeviceIndex": 0, "SubnetId": network.workers["a"], "Groups": [group]}
    started = await client.call(
        "ec2",
        "RunInstances",
        ImageId="ami-0123456789abcdef0",
        InstanceType="m5.large",
        MinCount=1,
        MaxCount=1,
        NetworkInterfaces=[interface],
    )
    described = await client.call("ec2", "DescribeInstances")

    [reservation] = described["Reservations"]
    for instance in (*started["Instances"], *reservation["Instances"]):
        assert [each["GroupId"] for each in instance["SecurityGroups"]] == [group]


async def test_instances_of_most_types_have_no_topology(client: AwsClient) -> None:
    assert await client.pages("ec2", "DescribeInstanceTopology", "Instances") == []


async def test_writes_are_distinguished_from_reads(aws: CorrectedAws, client: AwsClient) -> None:
    network = await Network.create(client)
    await network.file_system("a")
    aws.taken()

    await client.pages("ec2", "DescribeVpcs", "Vpcs")
    await client.pages("efs", "DescribeFileSystems", "FileSystems")
    await network.tag(network.id, a="b")

    assert aws.writes() == ["ec2 CreateTags"]
    assert aws.writes() == []


async def test_the_whole_content_of_an_account_can_be_compared(client: AwsClient) -> None:
    network = await Network.complete(client, zones=("a", "b"))
    await network.security_group()
    await nat_of(client, network.nats["a"])
    await nat_of(client, network.nats["b"])
    await client.call("ec2", "DescribeSubnets")
    before = await everything(client)

    await network.tag(network.workers["a"], team="x")
    after = await everything(client)

    assert before != after
    assert without_tags(before) == without_tags(after)
    assert tags_in(after) == {**tags_in(before), f"Subnets/{network.workers['a']}": {"team": "x"}}
    assert {key.partition("/")[0] for key in after} >= {"Vpcs", "Subnets", "NatGateways"}


def test_configurations_name_existing_resources() -> None:
    config = managed_config("eu-west-1", zones=("a", "b"), vpc="vpc-1", public=False)

    assert config["networks"] == {
        "vpc": {"id": "vpc-1"},
        "zones": [
            {"name": "eu-west-1a", "workers": "10.180.0.0/24", "internal": "10.180.2.0/24"},
            {"name": "eu-west-1b", "workers": "10.180.4.0/24", "internal": "10.180.6.0/24"},
        ],
    }
