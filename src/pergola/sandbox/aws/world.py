"""User-provided networks in AWS, and the contents of an account.

    network = await Network.create(client, zones=("a", "b"))
    await network.add_nat("a")
    group = await network.security_group()
    config = network.config(group=group)

Each call creates what its name says and nothing else; `workers`, `public` and `internal` keep the
ids by the letter of the zone.
"""

from collections.abc import Iterable, Mapping
from ipaddress import IPv6Network
from itertools import islice
from typing import Final, Self

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import NotFound
from pergola.runtime.task_group import gathered

RANGE: Final = "10.180.0.0/16"
"""The range of a VPC; in zone a, 10.180.0.0/24 is for workers, .1 public and .2 internal."""
_EVERYWHERE: Final = [{"CidrIp": "0.0.0.0/0"}]
_EVERYWHERE_6: Final = [{"CidrIpv6": "::/0"}]
_NODE_PORTS: Final = {"FromPort": 30000, "ToPort": 32767}
_ROLES: Final = {"public": 1, "internal": 2, "workers": 0}


class Network:
    """A user-provided VPC, created as its owner would.

    Attributes:
        id: the VPC.
        gateway: its internet gateway; empty if there is none.
        workers, public, internal: ids of subnets by the letters of their zones.
        tables: ids of route tables by the ids of their subnets.
        nats: ids of NAT gateways by the letters of their zones.
    """

    def __init__(self, client: AwsClient, vpc: str, prefix: str) -> None:
        self.client = client
        self.id = vpc
        self.prefix = prefix
        self.gateway = ""
        self.block6 = ""
        self.workers: dict[str, str] = {}
        self.public: dict[str, str] = {}
        self.internal: dict[str, str] = {}
        self.tables: dict[str, str] = {}
        self.nats: dict[str, str] = {}

    @classmethod
    async def create(
        cls,
        client: AwsClient,
        *,
        zones: Iterable[str] = ("a",),
        cidr: str = RANGE,
        dns: bool = True,
        dhcp: bool = True,
        ipv6: bool = False,
    ) -> Self:
        """Create a VPC with the DNS and DHCP options of clusters, and a worker subnet per zone.

        It has no internet gateway: its subnets reach only each other (pattern 3).
        """
        answer = await client.call(
            "ec2", "CreateVpc", CidrBlock=cidr, AmazonProvidedIpv6CidrBlock=ipv6
        )
        network = cls(client, answer["Vpc"]["VpcId"], ".".join(cidr.split(".")[:2]))
        if ipv6:
            network.block6 = answer["Vpc"]["Ipv6CidrBlockAssociationSet"][0]["Ipv6CidrBlock"]
        if dns:
            await network.dns("EnableDnsSupport", on=True)
            await network.dns("EnableDnsHostnames", on=True)
        if dhcp:
            await network.dhcp(f"{client.region}.compute.internal")
        for zone in zones:
            await network.add_subnet("workers", zone)
        return network

    @classmethod
    async def complete(
        cls,
        client: AwsClient,
        *,
        zones: Iterable[str] = ("a", "b", "c"),
        cidr: str = RANGE,
        ipv6: bool = False,
    ) -> Self:
        """Create a VPC for pattern 2: NAT, and subnets for load balancers in each zone."""
        network = await cls.create(client, zones=zones, cidr=cidr, ipv6=ipv6)
        await network.add_gateway()
        for zone in zones:
            await network.add_subnet("public", zone)
            await network.add_subnet("internal", zone)
            await network.add_nat(zone)
        return network

    async def dns(self, attribute: str, *, on: bool) -> None:
        """Set `EnableDnsSupport` or `EnableDnsHostnames`."""
        value = {attribute: {"Value": on}}
        await self.client.call("ec2", "ModifyVpcAttribute", VpcId=self.id, **value)

    async def dhcp(self, domain: str) -> str:
        """Associate DHCP options with a domain name, and return their id."""
        options = [
            {"Key": "domain-name", "Values": [domain]},
            {"Key": "domain-name-servers", "Values": ["AmazonProvidedDNS"]},
        ]
        answer = await self.client.call("ec2", "CreateDhcpOptions", DhcpConfigurations=options)
        name: str = answer["DhcpOptions"]["DhcpOptionsId"]
        await self.client.call("ec2", "AssociateDhcpOptions", DhcpOptionsId=name, VpcId=self.id)
        return name

    async def add_gateway(self) -> str:
        """Create and attach an internet gateway; return its id."""
        answer = await self.client.call("ec2", "CreateInternetGateway")
        self.gateway = answer["InternetGateway"]["InternetGatewayId"]
        await self.client.call(
            "ec2", "AttachInternetGateway", VpcId=self.id, InternetGatewayId=self.gateway
        )
        return self.gateway

    async def add_egress_only_gateway(self) -> str:
        """Create an egress-only internet gateway; return its id."""
        answer = await self.client.call("ec2", "CreateEgressOnlyInternetGateway", VpcId=self.id)
        name: str = answer["EgressOnlyInternetGateway"]["EgressOnlyInternetGatewayId"]
        return name

    async def add_subnet(
        self, role: str, zone: str, *, cidr: str = "", tags: Mapping[str, str] | None = None
    ) -> str:
        """Create a subnet with a route table of its own; return its id.

        Args:
            role: `workers`, `public` or `internal`; a public one gets a route to the internet
                gateway, if there is one, and each gets an IPv6 range if the VPC has a block.
        """
        number = _ROLES[role] + 4 * (ord(zone) - ord("a"))
        more = {"Ipv6CidrBlock": f"{self.block6[:-7]}{number:02x}::/64"} if self.block6 else {}
        answer = await self.client.call(
            "ec2",
            "CreateSubnet",
            VpcId=self.id,
            CidrBlock=cidr or f"{self.prefix}.{number}.0/24",
            AvailabilityZone=f"{self.client.region}{zone}",
            **more,
        )
        subnet: str = answer["Subnet"]["SubnetId"]
        {"workers": self.workers, "public": self.public, "internal": self.internal}[role][zone] = (
            subnet
        )
        await self.add_table(subnet)
        if role == "public" and self.gateway:
            await self.route(subnet, GatewayId=self.gateway)
        if self.block6 and role == "workers":
            await self.client.call(
                "ec2",
                "ModifySubnetAttribute",
                SubnetId=subnet,
                AssignIpv6AddressOnCreation={"Value": True},
            )
        if tags:
            await self.tag(subnet, **tags)
        return subnet

    def range6(self, number: int) -> str:
        """Return the n-th /64 of the VPC's IPv6 block."""
        ranges = IPv6Network(self.block6, strict=False).subnets(new_prefix=64)
        return str(next(islice(ranges, number, None)))

    async def add_table(self, *subnets: str) -> str:
        """Create a route table for subnets that have none yet; return its id."""
        answer = await self.client.call("ec2", "CreateRouteTable", VpcId=self.id)
        table: str = answer["RouteTable"]["RouteTableId"]
        for subnet in subnets:
            self.tables[subnet] = table
            await self.client.call(
                "ec2", "AssociateRouteTable", SubnetId=subnet, RouteTableId=table
            )
        return table

    async def route(self, subnet: str, to: str = "0.0.0.0/0", **target: str) -> None:
        """Add a route to the table of a subnet, as in `route(subnet, NatGatewayId=nat)`."""
        await self.client.call(
            "ec2",
            "CreateRoute",
            RouteTableId=self.tables[subnet],
            DestinationCidrBlock=to,
            **target,
        )

    async def add_nat(self, zone: str) -> str:
        """Create a NAT gateway in a zone's public subnet, and the workers' default route to it."""
        address = await self.add_address()
        answer = await self.client.call(
            "ec2", "CreateNatGateway", SubnetId=self.public[zone], AllocationId=address
        )
        self.nats[zone] = answer["NatGateway"]["NatGatewayId"]
        await self.route(self.workers[zone], NatGatewayId=self.nats[zone])
        return self.nats[zone]

    async def add_address(self) -> str:
        """Allocate an elastic IP; return its allocation id."""
        answer = await self.client.call("ec2", "AllocateAddress", Domain="vpc")
        allocation: str = answer["AllocationId"]
        return allocation

    async def add_endpoint(self, service: str, *tables: str) -> str:
        """Create a gateway endpoint, as for `s3`, with its route tables; return its id."""
        answer = await self.client.call(
            "ec2",
            "CreateVpcEndpoint",
            VpcId=self.id,
            ServiceName=f"com.amazonaws.{self.client.region}.{service}",
            RouteTableIds=list(tables),
        )
        endpoint: str = answer["VpcEndpoint"]["VpcEndpointId"]
        return endpoint

    async def security_group(self, name: str = "nodes", *, rules: bool = True) -> str:
        """Create a security group with the rules that nodes need (§6.3), or with none."""
        answer = await self.client.call(
            "ec2", "CreateSecurityGroup", GroupName=name, Description=name, VpcId=self.id
        )
        group: str = answer["GroupId"]
        if rules:
            await self.client.call(
                "ec2",
                "AuthorizeSecurityGroupIngress",
                GroupId=group,
                IpPermissions=required_rules(group, ipv6=bool(self.block6)),
            )
        return group

    async def file_system(self, *zones: str, group: str = "") -> str:
        """Create a file system with mount targets in the worker subnets of zones; return its id."""
        answer = await self.client.call(
            "efs", "CreateFileSystem", CreationToken=f"of-{self.id}", Encrypted=True
        )
        name: str = answer["FileSystemId"]
        groups = {"SecurityGroups": [group]} if group else {}
        for zone in zones:
            await self.client.call(
                "efs",
                "CreateMountTarget",
                FileSystemId=name,
                SubnetId=self.workers[zone],
                **groups,
            )
        return name

    async def tag(self, resource: str, **tags: str) -> None:
        """Set tags on a resource of this network."""
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        await self.client.call("ec2", "CreateTags", Resources=[resource], Tags=pairs)

    def config(self, *, group: str = "", balancers: bool = True) -> JsonObject:
        """Return an InfrastructureConfig with these user-provided subnets (patterns 2 and 3).

        Args:
            balancers: whether to name the subnets for load balancers.
        """
        zones = []
        for zone, subnet in self.workers.items():
            config = {"name": f"{self.client.region}{zone}", "workersSubnetID": subnet}
            if balancers and zone in self.public:
                config["publicSubnetID"] = self.public[zone]
            if balancers and zone in self.internal:
                config["internalSubnetID"] = self.internal[zone]
            zones.append(config)
        networks: JsonObject = {"vpc": {"id": self.id}, "zones": zones}
        if group:
            networks["nodesSecurityGroupID"] = group
        return _config(networks)


def managed_config(
    region: str,
    *,
    zones: Iterable[str] = ("a",),
    vpc: str = "",
    public: bool = True,
    prefix: str = "10.180",
) -> JsonObject:
    """Return an InfrastructureConfig of ranges, for a new VPC or an existing one (patterns 1, 4).

    Args:
        public: whether the zones have subnets for public load balancers and NAT.
    """
    described = []
    for number, zone in enumerate(zones):
        ranges = (
            {"workers": 0, "public": 1, "internal": 2} if public else {"workers": 0, "internal": 2}
        )
        cidrs = {role: f"{prefix}.{4 * number + each}.0/24" for role, each in ranges.items()}
        described.append({"name": f"{region}{zone}", **cidrs})
    where = {"id": vpc} if vpc else {"cidr": f"{prefix}.0.0/16"}
    return _config({"vpc": where, "zones": described})


def required_rules(group: str, *, ipv6: bool = False) -> list[JsonObject]:
    """Return the ingress rules of a security group that nodes need (spec 30 §6.3)."""
    ranges6 = {"Ipv6Ranges": _EVERYWHERE_6} if ipv6 else {}
    return [
        {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]},
        {"IpProtocol": "tcp", **_NODE_PORTS, "IpRanges": _EVERYWHERE, **ranges6},
        {"IpProtocol": "udp", **_NODE_PORTS, "IpRanges": _EVERYWHERE, **ranges6},
    ]


_EVERYTHING: Final = (
    ("ec2", "DescribeVpcs", "Vpcs", "VpcId"),
    ("ec2", "DescribeDhcpOptions", "DhcpOptions", "DhcpOptionsId"),
    ("ec2", "DescribeInternetGateways", "InternetGateways", "InternetGatewayId"),
    (
        "ec2",
        "DescribeEgressOnlyInternetGateways",
        "EgressOnlyInternetGateways",
        "EgressOnlyInternetGatewayId",
    ),
    ("ec2", "DescribeSubnets", "Subnets", "SubnetId"),
    ("ec2", "DescribeRouteTables", "RouteTables", "RouteTableId"),
    ("ec2", "DescribeNatGateways", "NatGateways", "NatGatewayId"),
    ("ec2", "DescribeAddresses", "Addresses", "AllocationId"),
    ("ec2", "DescribeSecurityGroups", "SecurityGroups", "GroupId"),
    ("ec2", "DescribeVpcEndpoints", "VpcEndpoints", "VpcEndpointId"),
    ("ec2", "DescribeKeyPairs", "KeyPairs", "KeyName"),
    ("ec2", "DescribeVolumes", "Volumes", "VolumeId"),
    ("elbv2", "DescribeLoadBalancers", "LoadBalancers", "LoadBalancerArn"),
    ("elb", "DescribeLoadBalancers", "LoadBalancerDescriptions", "LoadBalancerName"),
    ("iam", "ListRoles", "Roles", "RoleName"),
    ("iam", "ListInstanceProfiles", "InstanceProfiles", "InstanceProfileName"),
    ("efs", "DescribeFileSystems", "FileSystems", "FileSystemId"),
)


async def everything(client: AwsClient) -> dict[str, JsonObject]:
    """Return the contents of an account as AWS describes them, to compare before and after.

    Returns:
        Descriptions by kind and id, such as `Subnets/subnet-1`, without deleted NAT gateways.
    """
    lists = await gathered(
        client.pages(service, operation, items) for service, operation, items, _ in _EVERYTHING
    )
    found: dict[str, JsonObject] = {}
    for (_, _, items, name), things in zip(_EVERYTHING, lists, strict=True):
        found |= {f"{items}/{thing[name]}": thing for thing in things if _exists(thing)}
    for system in [thing for key, thing in found.items() if key.startswith("FileSystems/")]:
        targets = await client.pages(
            "efs", "DescribeMountTargets", "MountTargets", FileSystemId=system["FileSystemId"]
        )
        found |= {f"MountTargets/{target['MountTargetId']}": target for target in targets}
    for role in [thing for key, thing in found.items() if key.startswith("Roles/")]:
        found |= await _policies(client, role["RoleName"])
    return found


def tags_in(world: Mapping[str, JsonObject]) -> dict[str, dict[str, str]]:
    """Return the tags of everything that has any, by kind and id."""
    return {
        key: {tag["Key"]: tag["Value"] for tag in thing["Tags"]}
        for key, thing in world.items()
        if thing.get("Tags")
    }


def without_tags(world: Mapping[str, JsonObject]) -> dict[str, JsonObject]:
    """Return the same descriptions without tags."""
    return {
        key: {field: value for field, value in thing.items() if field != "Tags"}
        for key, thing in world.items()
    }


def _config(networks: JsonObject) -> JsonObject:
    return {
        "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
        "kind": "InfrastructureConfig",
        "networks": networks,
    }


def _exists(thing: JsonObject) -> bool:
    return thing.get("State") != "deleted"


async def _policies(client: AwsClient, role: str) -> dict[str, JsonObject]:
    found: dict[str, JsonObject] = {}
    try:
        for name in await client.pages("iam", "ListRolePolicies", "PolicyNames", RoleName=role):
            found[f"RolePolicies/{role}/{name}"] = await client.call(
                "iam", "GetRolePolicy", RoleName=role, PolicyName=str(name)
            )
    except NotFound:
        return found
    return found
