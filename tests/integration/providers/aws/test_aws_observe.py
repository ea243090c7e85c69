"""Observation of AWS: its result and its cost (spec 30 §13)."""

import orjson
import pytest

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import CloudError, Throttled, Unauthorized
from pergola.extension_api.errors import ExtensionError
from pergola.extensions.provider_config import read_strict
from pergola.flow import State
from pergola.providers.aws.config import INFRASTRUCTURE_CONFIG, InfrastructureConfig
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.observe import observe
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import Network, managed_config

REGION = "eu-west-1"
TECHNICAL_ID = "shoot--p--s"
POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "ec2:DescribeInstances", "Resource": "*"}],
}
NODES = f"{TECHNICAL_ID}-nodes"
OURS = {f"kubernetes.io/cluster/{TECHNICAL_ID}": "owned", "Name": TECHNICAL_ID}


def desired(config: JsonObject, **more: tuple[str, ...] | str) -> Desired:
    return Desired(
        technical_id=TECHNICAL_ID,
        region=REGION,
        config=read_strict(InfrastructureConfig, config, INFRASTRUCTURE_CONFIG),
        families=tuple(more.get("families", ("IPv4",))),
        shoot_uid=str(more.get("shoot_uid", "")),
    )


async def with_identity(client: AwsClient) -> None:
    """Create the identity of nodes: a role with a policy in a profile, and a key pair."""
    await client.call("iam", "CreateRole", RoleName=NODES, AssumeRolePolicyDocument="{}")
    await client.call("iam", "CreateInstanceProfile", InstanceProfileName=NODES)
    await client.call("iam", "AddRoleToInstanceProfile", InstanceProfileName=NODES, RoleName=NODES)
    policy = orjson.dumps(POLICY).decode()
    await client.call(
        "iam", "PutRolePolicy", RoleName=NODES, PolicyName=NODES, PolicyDocument=policy
    )
    await client.call("ec2", "CreateKeyPair", KeyName=f"{TECHNICAL_ID}-ssh-publickey")


async def test_a_user_provided_network_takes_twelve_reads_for_three_zones(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.complete(client)
    await with_identity(client)
    group = await network.security_group()
    aws.taken()

    found = await observe(client, desired(network.config(group=group)), State())

    calls = aws.requests.copy()
    assert not [str(call) for call in calls if call.is_write]
    assert sorted(map(str, calls)) == [
        "ec2 DescribeDhcpOptions",
        "ec2 DescribeKeyPairs",
        "ec2 DescribeNatGateways",
        "ec2 DescribeRouteTables",
        "ec2 DescribeSecurityGroups",
        "ec2 DescribeSubnets",
        "ec2 DescribeVpcAttribute",
        "ec2 DescribeVpcAttribute",
        "ec2 DescribeVpcEndpoints",
        "ec2 DescribeVpcs",
        "iam GetInstanceProfile",
        "iam GetRolePolicy",
    ]
    assert found.vpc is not None
    assert found.vpc["VpcId"] == network.id
    assert found.vpc_attributes == {"enableDnsSupport": True, "enableDnsHostnames": True}
    assert list(found.dhcp_options) == [found.vpc["DhcpOptionsId"]]
    byo = (network.workers, network.public, network.internal)
    assert set(found.subnets) == {subnet for several in byo for subnet in several.values()}
    assert set(found.route_tables) > set(network.tables.values())
    assert set(found.nat_gateways) == set(network.nats.values())
    assert group in found.security_groups
    assert found.key_pair is not None
    assert found.role is not None
    assert found.role["Arn"].endswith(f"/{NODES}")
    assert found.instance_profile is not None
    assert found.role_policy is not None
    assert found.role_policy["PolicyDocument"] == POLICY


async def test_a_managed_network_takes_fourteen_reads(aws: CorrectedAws, client: AwsClient) -> None:
    network = await Network.complete(client)
    await network.tag(network.id, **OURS)
    await network.tag(network.gateway, **OURS)
    await with_identity(client)
    endpoint = await network.add_endpoint("s3")
    config = managed_config(REGION, zones="abc")
    config["networks"]["vpc"]["gatewayEndpoints"] = ["s3"]
    aws.taken()

    found = await observe(client, desired(config), State({"VPC": network.id}))

    assert len(aws.taken()) == 14
    assert list(found.internet_gateways) == [network.gateway]
    assert list(found.endpoints) == [endpoint]
    assert found.addresses == {}


async def test_a_deletion_does_not_read_the_attributes_of_the_vpc(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.create(client)
    await network.tag(network.id, **OURS)
    aws.taken()

    for state in (State({"VPC": network.id}), State()):
        wanted = desired(managed_config(REGION))
        found = await observe(client, wanted, state, for_deletion=True)
        assert found.vpc is not None
        assert found.vpc_attributes == {}

    assert "ec2 DescribeVpcAttribute" not in aws.taken()


async def test_a_vpc_missing_in_the_state_is_found_by_its_tags(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.create(client)
    await network.tag(network.id, **{**OURS, next(iter(OURS)): "1"})
    other = await Network.create(client, cidr="10.9.0.0/16")
    await other.tag(other.id, **{"kubernetes.io/cluster/other": "owned", "Name": TECHNICAL_ID})

    found = await observe(client, desired(managed_config(REGION)), State())

    assert found.vpc is not None
    assert found.vpc["VpcId"] == network.id
    assert set(found.subnets) == set(network.workers.values())


async def test_several_vpcs_with_the_tags_of_one_cluster_are_refused(client: AwsClient) -> None:
    networks = [await Network.create(client, cidr=f"10.{n}.0.0/16") for n in range(2)]
    for network in networks:
        await network.tag(network.id, **OURS)

    with pytest.raises(ExtensionError, match="multiple matches") as caught:
        await observe(client, desired(managed_config(REGION)), State())

    assert all(network.id in str(caught.value) for network in networks)


async def test_without_a_vpc_its_content_is_not_requested(
    aws: CorrectedAws, client: AwsClient
) -> None:
    await Network.create(client, zones=())
    aws.taken()

    found = await observe(client, desired(managed_config(REGION)), State())

    assert found.vpc is None
    assert "ec2 DescribeSubnets" not in aws.taken()
    assert (found.role, found.instance_profile, found.role_policy) == (None, None, None)
    assert found.key_pair is None


async def test_a_missing_vpc_is_not_an_error(client: AwsClient) -> None:
    config = managed_config(REGION, vpc="vpc-00000000")

    found = await observe(client, desired(config), State())

    assert found.vpc is None
    assert found.vpc_attributes == {}


async def test_resources_in_another_vpc_take_one_additional_read_per_kind(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.create(client, zones=("a", "b"))
    other = await Network.create(client, cidr="10.9.0.0/16", zones=("a", "b"))
    config = network.config(group=await other.security_group())
    for zone, letter in zip(config["networks"]["zones"], "ab", strict=True):
        zone["workersSubnetID"] = other.workers[letter]
    aws.taken()

    found = await observe(client, desired(config), State())

    calls = aws.taken()
    assert calls.count("ec2 DescribeSubnets") == 2
    assert calls.count("ec2 DescribeSecurityGroups") == 2
    assert set(found.subnets) == {*network.workers.values(), *other.workers.values()}
    assert list(found.foreign_groups) == [config["networks"]["nodesSecurityGroupID"]]
    assert not set(found.foreign_groups) & set(found.security_groups)


async def test_only_addresses_of_the_cluster_and_of_its_config_are_observed(
    client: AwsClient,
) -> None:
    network = await Network.create(client)
    ours, users, _ = [await network.add_address() for _ in range(3)]
    await network.tag(ours, **OURS)
    config = managed_config(REGION, vpc=network.id)
    without_user = await observe(client, desired(config), State())
    config["networks"]["zones"][0]["elasticIPAllocationID"] = users

    found = await observe(client, desired(config), State())

    assert set(without_user.addresses) == {ours}
    assert set(found.addresses) == {ours, users}


async def test_egress_only_gateways_of_other_vpcs_are_ignored(client: AwsClient) -> None:
    network = await Network.create(client, ipv6=True)
    other = await Network.create(client, cidr="10.9.0.0/16", ipv6=True)
    gateway = await network.add_egress_only_gateway()
    await other.add_egress_only_gateway()

    found = await observe(
        client, desired(managed_config(REGION, vpc=network.id), families=("IPv6",)), State()
    )

    assert list(found.egress_only_gateways) == [gateway]


async def test_a_file_system_is_found_by_its_id_and_by_its_token(client: AwsClient) -> None:
    network = await Network.create(client)
    system = await network.file_system("a")
    named, unnamed = managed_config(REGION, vpc=network.id), managed_config(REGION, vpc=network.id)
    named["elasticFileSystem"] = {"enabled": True, "id": system}
    unnamed["elasticFileSystem"] = {"enabled": True}
    missing = {**named, "elasticFileSystem": {"enabled": True, "id": "fs-00000000"}}

    by_id = await observe(client, desired(named), State())
    by_token = await observe(client, desired(unnamed, shoot_uid=f"of-{network.id}"), State())
    nothing = await observe(client, desired(missing), State())

    for found in (by_id, by_token):
        assert found.file_system is not None
        assert found.file_system["FileSystemId"] == system
        assert [target["VpcId"] for target in found.mount_targets.values()] == [network.id]
    assert nothing.file_system is None


async def test_a_role_that_is_not_in_its_profile_is_requested_separately(client: AwsClient) -> None:
    await client.call("iam", "CreateRole", RoleName=NODES, AssumeRolePolicyDocument="{}")
    await client.call("iam", "CreateInstanceProfile", InstanceProfileName=NODES)

    found = await observe(client, desired(managed_config(REGION)), State())

    assert found.role is not None
    assert found.instance_profile is not None


async def test_persistent_throttling_is_reported_as_throttling(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.create(client)
    aws.throttle("DescribeSubnets", times=10)

    with pytest.raises(Throttled, match="DescribeSubnets"):
        await observe(client, desired(network.config()), State())


async def test_all_missing_permissions_are_reported_together(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.create(client)
    for operation in ("DescribeSubnets", "DescribeRouteTables"):
        aws.fail(operation, "UnauthorizedOperation", status=403)

    with pytest.raises(ExceptionGroup) as caught:
        await observe(client, desired(network.config()), State())

    errors = caught.value.exceptions
    assert {type(error) for error in errors} == {Unauthorized}
    assert {error.call.split()[1] for error in errors if isinstance(error, CloudError)} == {
        "DescribeSubnets",
        "DescribeRouteTables",
    }
