"""Resources of a user survive the deletion of a cluster, even if they have the cluster's tag.

A resource is the cluster's if the state names it, or if it has the cluster's tag and exactly one of
the cluster's names. Resources of the cloud controller have other names, so they are the cluster's
if the tag has exactly the value `owned`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

import orjson
import pytest

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.providers.aws.resources.iam.policies import TRUST
from pergola.providers.aws.wanted import ROLE_INTERNAL, ROLE_PUBLIC, Wanted
from pergola.testing.aws.corrections import QUICK
from pergola.testing.aws.flows import Flows, MortalAws, creation, deletion
from pergola.testing.aws.steps import PUBLIC_KEY, TECHNICAL_ID, read_config
from pergola.testing.aws.world import Network, everything, managed_config, tags_in

REGION = "eu-west-1"
CLUSTER_TAG = f"kubernetes.io/cluster/{TECHNICAL_ID}"
VALUES = ("1", "owned", "shared", "")
"""Of the cluster's tag; an empty one stands for no tag."""
POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "s3:Get*", "Resource": "*"}],
}


class User:
    """The user who creates one resource of each kind.

    Args:
        value: of the cluster's tag on all of them.
    """

    def __init__(self, network: Network, value: str) -> None:
        self.network = network
        self.client = network.client
        self.number = VALUES.index(value)
        self.tags = {ROLE_PUBLIC: "1", ROLE_INTERNAL: "1"}
        if value:
            self.tags[CLUSTER_TAG] = value

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
        await self._ec2("CreateRouteTable", "route-table", f"private-{REGION}", VpcId=vpc)

    async def group(self) -> None:
        name, vpc = self.name("nodes"), self.network.id
        await self._ec2(
            "CreateSecurityGroup",
            "security-group",
            "nodes",
            GroupName=name,
            Description=name,
            VpcId=vpc,
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
        await self.client.call(
            "iam", "CreateInstanceProfile", InstanceProfileName=self.name("nodes"), Path="/"
        )

    async def file_system(self) -> None:
        answer = await self.client.call(
            "efs", "CreateFileSystem", CreationToken=self.name("efs"), Tags=self.listed("")
        )
        await self.client.call(
            "efs",
            "CreateMountTarget",
            FileSystemId=answer["FileSystemId"],
            SubnetId=await self.subnet_of_file_system(),
        )

    async def subnet_of_file_system(self) -> str:
        answer = await self.client.call(
            "ec2",
            "CreateSubnet",
            VpcId=self.network.id,
            CidrBlock=f"10.180.{120 + self.number}.0/24",
            AvailabilityZone=f"{REGION}a",
        )
        found: str = answer["Subnet"]["SubnetId"]
        return found


KINDS: dict[str, Callable[[User], Awaitable[object]]] = {
    "DeleteNatGateway": User.gateway,  # with a subnet and an elastic IP
    "DeleteSubnet": User.gateway,
    "ReleaseAddress": User.address,
    "DeleteRouteTable": User.table,
    "DeleteSecurityGroup": User.group,
    "DeleteVpcEndpoints": User.endpoint,
    "DeleteKeyPair": User.key_pair,
    "DeleteVpc": User.vpc,
    "DeleteDhcpOptions": User.options,
    "DeleteInternetGateway": User.internet_gateway,
    "DeleteEgressOnlyInternetGateway": User.egress_only_gateway,
    "DeleteRole": User.role,
    "DeleteRolePolicy": User.role,
    "DeleteInstanceProfile": User.profile,
    "DeleteFileSystem": User.file_system,
    "DeleteMountTarget": User.file_system,
}
"""By the operation with which the deletion of a cluster deletes resources of a kind."""
_BUSY = ("NatGateways/", "Subnets/", "FileSystems/", "MountTargets/", "Vpcs/")
"""AWS itself changes their descriptions: states, and the numbers of free addresses."""
ONLY_RELATIONS = {
    "DetachInternetGateway",
    "RemoveRoleFromInstanceProfile",
    "DisassociateRouteTable",
}


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
    for value in VALUES:
        user = User(network, value)
        for create in dict.fromkeys(KINDS.values()):
            # The cloud controller creates security groups, with any name and the value `owned`.
            if (create, value) != (User.group, "owned"):
                await create(user)
    before = await everything(client)

    config = managed_config(REGION, vpc=network.id if is_inside else "")
    config["networks"]["vpc"]["gatewayEndpoints"] = ["dynamodb"]
    config |= {"dualStack": {"enabled": True}, "elasticFileSystem": {"enabled": True}}
    cluster = Flows(mortal, client, _wanted(config))
    await cluster.remember()
    await cluster.run(creation)
    await cluster.run(creation)
    mortal.taken()
    await cluster.run(deletion)

    deleted = {call.split()[1] for call in mortal.writes()} - ONLY_RELATIONS
    assert deleted <= KINDS.keys()
    assert {"DeleteSubnet", "DeleteNatGateway", "DeleteFileSystem", "DeleteRole"} <= deleted
    assert is_inside or "DeleteVpc" in deleted
    after = await everything(client)
    assert after.keys() == before.keys()
    assert tags_in(after) == tags_in(before)
    for name in before:
        if not name.startswith(_BUSY):
            assert after[name] == before[name]


def _wanted(config: JsonObject) -> Wanted:
    return Wanted(
        technical_id=TECHNICAL_ID,
        region=REGION,
        config=read_config(config),
        families=("IPv4", "IPv6"),
        node_range="10.180.0.0/16",
        shoot_uid="0b7c0a3e-6f0b-4a57-8a9e-7c3c8f1d2e4f",
        ssh_public_key=PUBLIC_KEY,
    )
