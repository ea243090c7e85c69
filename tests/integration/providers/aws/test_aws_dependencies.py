"""The AWS of our tests enforces the order of deletions (spec 30 §12)."""

import pytest

from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import DependencyProblem, NotFound
from pergola.sandbox.aws.world import Network
from tests.support.aws.picture import differences, picture


async def test_deleting_a_subnet_deletes_its_association(client: AwsClient) -> None:
    network = await Network.create(client)
    subnet = network.workers["a"]

    await client.call("ec2", "DeleteSubnet", SubnetId=subnet)

    await client.call("ec2", "DeleteRouteTable", RouteTableId=network.tables[subnet])


async def test_a_vpc_in_use_cannot_be_deleted(client: AwsClient) -> None:
    network = await Network.create(client, zones=())
    group = await network.security_group(rules=False)

    with pytest.raises(DependencyProblem, match=group):
        await client.call("ec2", "DeleteVpc", VpcId=network.id)
    await client.call("ec2", "DeleteSecurityGroup", GroupId=group)

    await client.call("ec2", "DeleteVpc", VpcId=network.id)


async def test_dhcp_options_outlive_their_vpc(client: AwsClient) -> None:
    network = await Network.create(client, zones=(), dhcp=False)
    options = await network.dhcp("eu-west-1.compute.internal")

    await client.call("ec2", "DeleteVpc", VpcId=network.id)

    found = await client.pages("ec2", "DescribeDhcpOptions", "DhcpOptions")
    assert [each["DhcpOptionsId"] for each in found] == [options]


async def test_dhcp_options_have_the_tags_of_their_creation(client: AwsClient) -> None:
    await client.call(
        "ec2",
        "CreateDhcpOptions",
        DhcpConfigurations=[{"Key": "domain-name", "Values": ["internal"]}],
        TagSpecifications=[
            {"ResourceType": "dhcp-options", "Tags": [{"Key": "team", "Value": "x"}]}
        ],
    )

    found = await client.pages("ec2", "DescribeDhcpOptions", "DhcpOptions")

    assert [each["Tags"] for each in found] == [[{"Key": "team", "Value": "x"}]]


async def test_a_group_that_another_group_names_cannot_be_deleted(client: AwsClient) -> None:
    network = await Network.create(client, zones=())
    named = await network.security_group("named", rules=False)
    naming = await network.security_group("naming", rules=False)
    rule = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": named}]}
    both = {"GroupId": naming, "IpPermissions": [rule]}
    await client.call("ec2", "AuthorizeSecurityGroupIngress", **both)

    with pytest.raises(DependencyProblem, match=naming):
        await client.call("ec2", "DeleteSecurityGroup", GroupId=named)
    await client.call("ec2", "RevokeSecurityGroupIngress", **both)

    await client.call("ec2", "DeleteSecurityGroup", GroupId=named)


async def test_an_endpoint_releases_deleted_tables_and_accepts_only_existing_ones(
    client: AwsClient,
) -> None:
    network = await Network.create(client, zones=())
    table, other = await network.add_table(), await network.add_table()
    endpoint = await network.add_endpoint("s3")
    for each in (table, other):
        await client.call(
            "ec2", "ModifyVpcEndpoint", VpcEndpointId=endpoint, AddRouteTableIds=[each]
        )

    await client.call("ec2", "DeleteRouteTable", RouteTableId=other)

    (found,) = await client.pages("ec2", "DescribeVpcEndpoints", "VpcEndpoints")
    assert found["RouteTableIds"] == [table]
    with pytest.raises(NotFound):
        await client.call(
            "ec2", "ModifyVpcEndpoint", VpcEndpointId=endpoint, AddRouteTableIds=[other]
        )
    await client.call("ec2", "DeleteVpcEndpoints", VpcEndpointIds=[endpoint])
    with pytest.raises(NotFound):
        await client.call(
            "ec2", "ModifyVpcEndpoint", VpcEndpointId=endpoint, AddRouteTableIds=[table]
        )


async def test_pictures_of_the_same_account_are_equal_and_show_duplicates(
    client: AwsClient,
) -> None:
    first = await Network.complete(client, zones=("a",), ipv6=True)
    state = {"VPC": first.id, "EgressCIDRs": "198.51.100.7/32"}
    before = await picture(client, state)

    again = await picture(client, state)
    await first.add_table()
    more = await picture(client, state)

    assert differences(again, before) == []
    assert [line[:14] for line in differences(more, before)] == ["+ RouteTables "]
    assert not [line for line in before if first.id in line or first.block6 in line]
