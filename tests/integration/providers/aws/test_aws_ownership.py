"""Resources of a user survive the deletion of a cluster, even if they have the cluster's tag.

A resource is the cluster's if the state names it, or if it has the cluster's tag and exactly one of
the cluster's names. Resources of the cloud controller have other names, so they are the cluster's
if the tag has exactly the value `owned`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from itertools import product
from pathlib import Path

import orjson
import pytest

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.providers.aws.desired import ROLE_INTERNAL, ROLE_PUBLIC, Desired
from pergola.providers.aws.garden_iam_policy import Purpose, operations
from pergola.providers.aws.iam_policy import Feature, Mode, actions
from pergola.providers.aws.resources.iam.policies import TRUST
from pergola.sandbox.aws.corrections import QUICK
from pergola.sandbox.aws.world import Network, everything, managed_config, required_rules, tags_in
from tests.support.aws.flows import Flows, MortalAws, creation, deletion
from tests.support.aws.steps import PUBLIC_KEY, TECHNICAL_ID, read_config

REGION = "eu-west-1"
CLUSTER_TAG = f"kubernetes.io/cluster/{TECHNICAL_ID}"
OTHER = f"{TECHNICAL_ID}-2"
MARKS = list(product(("1", "owned", "shared", ""), (True, False)))
"""Values of the cluster's tag, an empty one for no tag, with and without the tags of roles."""
POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "s3:Get*", "Resource": "*"}],
}


class User:
    """The user who creates one resource of each kind.

    Args:
        value: of the cluster's tag on all of them.
        has_role: whether they have the tags of subnets for load balancers.
    """

    def __init__(self, network: Network, value: str, *, has_role: bool) -> None:
        self.network = network
        self.client = network.client
        self.number = MARKS.index((value, has_role))
        self.tags = {ROLE_PUBLIC: "1", ROLE_INTERNAL: "1"} if has_role else {}
        if value:
            self.tags[CLUSTER_TAG] = value
        self.is_of_cloud_controller = value == "owned"

    def name(self, suffix: str) -> str:
        """Return a name that is similar to one of the cluster's."""
        return f"{TECHNICAL_ID}-{suffix}{self.number}-mine"

    def listed(self, suffix: str) -> list[JsonObject]:
        tags = {**self.tags, "Name": self.name(suffix)}
        return [{"Key": key, "Value": value} for key, value in tags.items()]

    async def _ec2(self, operation: str, kind: str, suffix: str, **more: object) -> JsonObject:
        tags = [{"ResourceType": kind, "Tags": self.listed(suffix)}]
        return await self.client.call("ec2", operation, TagSpecifications=tags, **more)

    async def subnet(self) -> str:
        answer = await self._ec2(
            "CreateSubnet",
            "subnet",
            "nodes-z",
            VpcId=self.network.id,
            CidrBlock=f"10.180.{100 + self.number}.0/24",
            AvailabilityZone=f"{REGION}a",
        )
        found: str = answer["Subnet"]["SubnetId"]
        return found

    async def gateway(self) -> None:
        address = (await self.address())["AllocationId"]
        await self._ec2(
            "CreateNatGateway",
            "natgateway",
            "natgw-z",
            SubnetId=await self.subnet(),
            AllocationId=address,
        )

    async def address(self) -> JsonObject:
        return await self._ec2("AllocateAddress", "elastic-ip", "eip-natgw-z", Domain="vpc")

    async def table(self) -> None:
        vpc = self.network.id
        answer = await self._ec2("CreateRouteTable", "route-table", f"private-{REGION}", VpcId=vpc)
        table = answer["RouteTable"]["RouteTableId"]
        subnet = await self.another_subnet(140)
        await self.client.call("ec2", "AssociateRouteTable", RouteTableId=table, SubnetId=subnet)
        await self.client.call(
            "ec2",
            "CreateRoute",
            RouteTableId=table,
            DestinationCidrBlock="0.0.0.0/0",
            GatewayId=self.network.gateway,
        )

    async def group(self) -> None:
        if self.is_of_cloud_controller:
            return
        name, vpc = self.name("nodes"), self.network.id
        answer = await self._ec2(
            "CreateSecurityGroup",
            "security-group",
            "nodes",
            GroupName=name,
            Description=name,
            VpcId=vpc,
        )
        group = answer["GroupId"]
        rules = required_rules(group)
        await self.client.call(
            "ec2", "AuthorizeSecurityGroupIngress", GroupId=group, IpPermissions=rules
        )

    async def balancer(self) -> None:
        if self.is_of_cloud_controller:
            return
        name, tags = f"mine-{self.number}", self.listed("nodes")
        subnet = await self.another_subnet(160)
        answer = await self.client.call(
            "elbv2", "CreateLoadBalancer", Name=name, Type="network", Subnets=[subnet], Tags=tags
        )
        balancer = answer["LoadBalancers"][0]["LoadBalancerArn"]
        answer = await self.client.call(
            "elbv2",
            "CreateTargetGroup",
            Name=name,
            Protocol="TCP",
            Port=80,
            VpcId=self.network.id,
            Tags=tags,
        )
        to_group = {
            "Type": "forward",
            "TargetGroupArn": answer["TargetGroups"][0]["TargetGroupArn"],
        }
        await self.client.call(
            "elbv2",
            "CreateListener",
            LoadBalancerArn=balancer,
            Protocol="TCP",
            Port=80,
            DefaultActions=[to_group],
        )
        await self.client.call(
            "elb",
            "CreateLoadBalancer",
            LoadBalancerName=f"classic-{self.number}",
            Listeners=[{"Protocol": "TCP", "LoadBalancerPort": 80, "InstancePort": 80}],
            Subnets=[subnet],
            Tags=tags,
        )

    async def endpoint(self) -> None:
        service = f"com.amazonaws.{REGION}.s3"
        vpc = self.network.id
        await self._ec2(
            "CreateVpcEndpoint", "vpc-endpoint", "gw-s3", VpcId=vpc, ServiceName=service
        )

    async def key_pair(self) -> None:
        await self._ec2("CreateKeyPair", "key-pair", "", KeyName=self.name("ssh-publickey"))

    async def vpc(self) -> None:
        await self._ec2("CreateVpc", "vpc", "", CidrBlock="10.99.0.0/16")

    async def options(self) -> None:
        domain = {"Key": "domain-name", "Values": ["example.com"]}
        await self._ec2("CreateDhcpOptions", "dhcp-options", "", DhcpConfigurations=[domain])

    async def internet_gateway(self) -> None:
        await self._ec2("CreateInternetGateway", "internet-gateway", "")

    async def egress_only_gateway(self) -> None:
        kind, vpc = "egress-only-internet-gateway", self.network.id
        await self._ec2("CreateEgressOnlyInternetGateway", kind, "", VpcId=vpc)

    async def role(self) -> None:
        name = self.name("nodes")
        trust, policy = orjson.dumps(TRUST).decode(), orjson.dumps(POLICY).decode()
        await self.client.call(
            "iam", "CreateRole", RoleName=name, Path="/", AssumeRolePolicyDocument=trust
        )
        await self.client.call(
            "iam", "PutRolePolicy", RoleName=name, PolicyName=name, PolicyDocument=policy
        )

    async def profile(self) -> None:
        name = self.name("nodes")
        await self.client.call("iam", "CreateInstanceProfile", InstanceProfileName=name, Path="/")
        await self.role()
        await self.client.call(
            "iam", "AddRoleToInstanceProfile", InstanceProfileName=name, RoleName=name
        )

    async def file_system(self) -> None:
        answer = await self.client.call(
            "efs", "CreateFileSystem", CreationToken=self.name("efs"), Tags=self.listed("")
        )
        await self.client.call(
            "efs",
            "CreateMountTarget",
            FileSystemId=answer["FileSystemId"],
            SubnetId=await self.another_subnet(120),
        )

    async def another_subnet(self, third: int) -> str:
        answer = await self.client.call(
            "ec2",
            "CreateSubnet",
            VpcId=self.network.id,
            CidrBlock=f"10.180.{third + self.number}.0/24",
            AvailabilityZone=f"{REGION}a",
        )
        found: str = answer["Subnet"]["SubnetId"]
        return found


KINDS: dict[str, Callable[[User], Awaitable[object]]] = {
    "AddRoleToInstanceProfile": User.profile,  # with a role
    "AssociateDhcpOptions": User.vpc,
    "AssociateRouteTable": User.table,  # with a subnet and a route
    "AssociateSubnetCidrBlock": User.gateway,
    "AssociateVpcCidrBlock": User.vpc,
    "AttachInternetGateway": User.internet_gateway,
    "AuthorizeSecurityGroupEgress": User.group,
    "AuthorizeSecurityGroupIngress": User.group,
    "CreateMountTarget": User.file_system,
    "CreateRoute": User.table,
    "CreateTags": User.gateway,  # and on everything else
    "DeleteDhcpOptions": User.options,
    "DeleteEgressOnlyInternetGateway": User.egress_only_gateway,
    "DeleteFileSystem": User.file_system,
    "DeleteInstanceProfile": User.profile,
    "DeleteInternetGateway": User.internet_gateway,
    "DeleteKeyPair": User.key_pair,
    "DeleteLoadBalancer": User.balancer,
    "DeleteMountTarget": User.file_system,
    "DeleteNatGateway": User.gateway,  # with a subnet and an elastic IP
    "DeleteRole": User.profile,
    "DeleteRolePolicy": User.profile,
    "DeleteRouteTable": User.table,
    "DeleteSecurityGroup": User.group,
    "DeleteSubnet": User.gateway,
    "DeleteTags": User.gateway,
    "DeleteTargetGroup": User.balancer,
    "DeleteVpc": User.vpc,
    "DeleteVpcEndpoints": User.endpoint,
    "DetachInternetGateway": User.internet_gateway,
    "ModifySubnetAttribute": User.gateway,
    "ModifyVpcAttribute": User.vpc,
    "ModifyVpcEndpoint": User.endpoint,
    "PutRolePermissionsBoundary": User.profile,
    "PutRolePolicy": User.profile,
    "ReleaseAddress": User.address,
    "RemoveRoleFromInstanceProfile": User.profile,
    "ReplaceRoute": User.table,
    "ReplaceRouteTableAssociation": User.table,
    "RevokeSecurityGroupEgress": User.group,
    "RevokeSecurityGroupIngress": User.group,
    "TagResource": User.file_system,
    "UpdateAssumeRolePolicy": User.profile,
}
"""A resource that each operation of the policy could delete or change, as users create it.

The cloud controller gives its load balancers and groups any name and the value `owned` of the
cluster's tag, so nothing else distinguishes them: users do not create any with this value.
"""
BUCKET = "test_a_bucket_that_existed_before_is_used_but_neither_changed_nor_deleted"
ELSEWHERE = {
    "AbortMultipartUpload": BUCKET,
    "ChangeResourceRecordSets": "test_only_records_that_were_created_are_deleted",
    "DeleteBucket": BUCKET,
    "DeleteObjects": "test_only_objects_under_the_prefix_of_the_entry_are_deleted",
    "DeleteRoute": "test_routes_to_deleted_pods_are_removed_only_if_the_operator_allows_it",
    "DeleteSubnetCidrReservation": "test_only_the_reservation_that_the_cluster_made_is_released",
    "PutBucketEncryption": BUCKET,
    "PutBucketLifecycleConfiguration": BUCKET,
    "PutBucketPolicy": BUCKET,
    "PutBucketVersioning": BUCKET,
    "PutObjectLockConfiguration": BUCKET,
    "PutPublicAccessBlock": BUCKET,
    "TerminateInstances": (
        "test_an_instance_and_a_group_of_the_user_with_the_marks_of_a_bastion_outlive_it"
    ),
}
"""The tests of operations of other controllers, and of those in networks of users."""
ON_BEHALF = {"CreateNetworkInterface", "DeleteNetworkInterface"}
"""What EFS does for its own mount targets; the extension never requests it."""
CREATING = {
    "AllocateAddress",
    "CreateBucket",
    "CreateDhcpOptions",
    "CreateEgressOnlyInternetGateway",
    "CreateFileSystem",
    "CreateInstanceProfile",
    "CreateInternetGateway",
    "CreateNatGateway",
    "CreateRole",
    "CreateRouteTable",
    "CreateSecurityGroup",
    "CreateSubnet",
    "CreateSubnetCidrReservation",
    "CreateVpc",
    "CreateVpcEndpoint",
    "ImportKeyPair",
    "RunInstances",
}
_READS = ("Describe", "Get", "Head", "List")
_BUSY = ("NatGateways/", "Subnets/", "FileSystems/", "MountTargets/", "Vpcs/")
"""AWS itself changes their descriptions: states, and the numbers of free addresses."""


def test_each_operation_of_the_policies_is_tested_with_resources_of_users() -> None:
    of_policy = {
        action.partition(":")[2] for mode in Mode for action in actions(mode, list(Feature))
    }
    allowed = of_policy.union(*(operations(purpose) for purpose in Purpose))
    writing = {each for each in allowed if not each.startswith(_READS)}

    assert writing == KINDS.keys() | ELSEWHERE.keys() | ON_BEHALF | CREATING
    sources = [path.read_text() for path in Path(__file__).parent.glob("test_*.py")]
    for name in ELSEWHERE.values():
        assert any(f"def {name}(" in source for source in sources)


@pytest.fixture
async def client(mortal: MortalAws) -> AsyncIterator[AwsClient]:
    async with mortal.client(REGION, retry=QUICK) as client:
        yield client


@pytest.mark.parametrize("is_inside", [True, False], ids=["in their VPC", "beside their VPC"])
async def test_resources_of_users_with_the_tag_of_a_cluster_outlive_it_unchanged(
    mortal: MortalAws, client: AwsClient, *, is_inside: bool
) -> None:
    network = await Network.create(client, zones=(), ipv6=True)
    await network.add_gateway()
    for value, has_role in MARKS if is_inside else MARKS[::2]:
        user = User(network, value, has_role=has_role)
        for create in dict.fromkeys(KINDS.values()):
            await create(user)
    before = await everything(client)

    config = managed_config(REGION, vpc=network.id if is_inside else "")
    config["networks"]["vpc"]["gatewayEndpoints"] = ["dynamodb"]
    config |= {"dualStack": {"enabled": True}, "elasticFileSystem": {"enabled": True}}
    cluster = Flows(mortal, client, _desired(config))
    await cluster.remember()
    await cluster.run(creation)
    await cluster.run(creation)
    mortal.taken()
    await cluster.run(deletion)

    deleted = {call.split()[1] for call in mortal.writes()}
    assert {"DeleteSubnet", "DeleteNatGateway", "DeleteFileSystem", "DeleteRole"} <= deleted
    assert is_inside or "DeleteVpc" in deleted
    after = await everything(client)
    assert after.keys() == before.keys()
    assert _unchanged(after) == _unchanged(before)


async def test_the_resources_of_another_cluster_in_the_vpc_outlive_a_cluster_unchanged(
    mortal: MortalAws, client: AwsClient
) -> None:
    """The name of the other cluster starts with that of the deleted one."""
    network = await Network.create(client, zones=(), ipv6=True)
    await network.add_gateway()
    await network.add_egress_only_gateway()
    one, other = (
        Flows(mortal, client, _desired(_config_in_zone(network, zone), technical_id))
        for zone, technical_id in (("a", TECHNICAL_ID), ("b", OTHER))
    )
    for cluster in (one, other, one, other):
        await cluster.run(creation)
    before = await everything(client)
    mine = {key for key, thing in before.items() if OTHER in orjson.dumps(thing).decode()}
    assert {key.partition("/")[0] for key in mine} >= {
        "Subnets",
        "NatGateways",
        "KeyPairs",
        "Roles",
    }

    await one.run(deletion)

    after = await everything(client)
    assert mine <= after.keys()
    assert _unchanged(after, mine) == _unchanged(before, mine)
    mortal.taken()
    await other.run(creation)
    assert mortal.writes() == []


def _unchanged(
    world: dict[str, JsonObject], keys: Collection[str] | None = None
) -> dict[str, JsonObject]:
    """Return what must not change: descriptions, or the tags alone where AWS changes the rest."""
    tags = tags_in(world)
    return {
        key: {"Tags": tags.get(key)} if key.startswith(_BUSY) else thing
        for key, thing in world.items()
        if keys is None or key in keys
    }


def _config_in_zone(network: Network, zone: str) -> JsonObject:
    config = managed_config(REGION, zones=("a", "b"), vpc=network.id)
    zones = config["networks"]["zones"]
    config["networks"]["zones"] = [each for each in zones if each["name"] == f"{REGION}{zone}"]
    return config | {"elasticFileSystem": {"enabled": True}}


def _desired(config: JsonObject, technical_id: str = TECHNICAL_ID) -> Desired:
    return Desired(
        technical_id=technical_id,
        region=REGION,
        config=read_config(config),
        families=("IPv4", "IPv6"),
        node_range="10.180.0.0/16",
        shoot_uid=f"0b7c0a3e-{technical_id}",
        ssh_public_key=PUBLIC_KEY,
    )
