"""AWSClusters filled from a network in AWS: spec 50 §5 and §8, with moto as AWS."""

import asyncio
import os
import secrets
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from pergola.api.cluster_api import (
    AWS_ACCOUNT,
    AWS_CONTROL_PLANE_TAG,
    AWS_LOAD_BALANCER,
    AWS_PROVIDER_TAG,
    AWS_SECURITY_GROUPS,
    AWS_VPC,
    AWS_VPC_TAGS,
    AWS_ZONES,
    CLUSTER_NAME,
    INFRASTRUCTURE_GROUP,
    MANAGED_BY,
    SOURCE,
)
from pergola.api.conditions import get_condition
from pergola.api.kinds import CONFIG_MAP, EVENT, SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at
from pergola.cloud.aws import AwsClient, Retry
from pergola.externally_managed.aws import AwsSettings, AwsSource, iam_policy
from pergola.externally_managed.kinds import Managed, managed_kind
from pergola.externally_managed.manager import Settings, external_manager
from pergola.externally_managed.sources import PlainSource
from pergola.kube.yaml import dump
from pergola.runtime.metrics import Metrics
from pergola.sandbox.aws.moto import ACCOUNT, AwsDouble, moto
from pergola.testing.waiting import PATIENCE, running, settled, until
from pergola.testing.world import RecordingClient, config_map
from tests.support.cluster_api import aws_provider_crds, cluster, infra_cluster, install

AWS_CLUSTER = GroupVersionKind(INFRASTRUCTURE_GROUP, "v1beta2", "AWSCluster")
TEMPLATE = AWS_CLUSTER._replace(kind="AWSMachineTemplate")
REGION = "eu-west-1"
QUICK = Retry(attempts=4, first_seconds=0.001)


# AWS


class Vpc:
    """A network in AWS, created as its owner would."""

    def __init__(self, aws: AwsClient, vpc: str) -> None:
        self.aws = aws
        self.id = vpc
        self.tables: dict[str, str] = {}
        self.private: dict[str, str] = {}
        self.public = ""
        self.nat = ""

    @classmethod
    async def create(cls, aws: AwsClient, **tags: str) -> "Vpc":
        """Create a VPC with an internet gateway, and a public subnet with NAT in zone a."""
        answer = await aws.call("ec2", "CreateVpc", CidrBlock="10.0.0.0/16")
        vpc = cls(aws, answer["Vpc"]["VpcId"])
        if tags:
            await vpc.tag(vpc.id, **tags)
        answer = await aws.call("ec2", "CreateInternetGateway")
        vpc.internet = answer["InternetGateway"]["InternetGatewayId"]
        await aws.call("ec2", "AttachInternetGateway", VpcId=vpc.id, InternetGatewayId=vpc.internet)
        vpc.public = await vpc.subnet("a", 0, GatewayId=vpc.internet)
        address = await aws.call("ec2", "AllocateAddress", Domain="vpc")
        answer = await aws.call(
            "ec2",
            "CreateNatGateway",
            SubnetId=vpc.public,
            AllocationId=address["AllocationId"],
        )
        vpc.nat = answer["NatGateway"]["NatGatewayId"]
        return vpc

    internet = ""

    async def subnet(self, zone: str, number: int, **target: str) -> str:
        """Create a subnet with its own route table and, if there is a target, a default route."""
        answer = await self.aws.call(
            "ec2",
            "CreateSubnet",
            VpcId=self.id,
            CidrBlock=f"10.0.{number}.0/24",
            AvailabilityZone=f"{REGION}{zone}",
        )
        subnet: str = answer["Subnet"]["SubnetId"]
        answer = await self.aws.call("ec2", "CreateRouteTable", VpcId=self.id)
        table = answer["RouteTable"]["RouteTableId"]
        self.tables[subnet] = table
        await self.aws.call("ec2", "AssociateRouteTable", SubnetId=subnet, RouteTableId=table)
        if target:
            await self.route(subnet, **target)
        return subnet

    async def add_private(self, zone: str, number: int) -> str:
        subnet = await self.subnet(zone, number, NatGatewayId=self.nat)
        self.private[zone] = subnet
        return subnet

    async def route(self, subnet: str, **target: str) -> None:
        await self.aws.call(
            "ec2",
            "CreateRoute",
            RouteTableId=self.tables[subnet],
            DestinationCidrBlock="0.0.0.0/0",
            **target,
        )

    async def group(self, name: str, role: str = "", owner: str = "demo") -> str:
        answer = await self.aws.call(
            "ec2", "CreateSecurityGroup", GroupName=name, Description=name, VpcId=self.id
        )
        group: str = answer["GroupId"]
        if role:
            await self.tag(
                group,
                **{
                    f"{AWS_PROVIDER_TAG}/role": role,
                    f"{AWS_PROVIDER_TAG}/cluster/{owner}": "owned",
                },
            )
        return group

    async def tag(self, resource: str, **tags: str) -> None:
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        await self.aws.call("ec2", "CreateTags", Resources=[resource], Tags=pairs)

    async def balancer(self, name: str, *ports: int) -> JsonObject:
        """Create a network load balancer in the public subnet."""
        answer = await self.aws.call(
            "elbv2",
            "CreateLoadBalancer",
            Name=name,
            Type="network",
            Scheme="internal",
            Subnets=[self.public],
        )
        found: JsonObject = answer["LoadBalancers"][0]
        for port in ports:
            await self._listen(found["LoadBalancerArn"], port)
        return found

    async def _listen(self, balancer: str, port: int) -> None:
        answer = await self.aws.call(
            "elbv2",
            "CreateTargetGroup",
            Name=f"targets-{secrets.token_hex(4)}",
            Protocol="TCP",
            Port=port,
            VpcId=self.id,
        )
        target = answer["TargetGroups"][0]["TargetGroupArn"]
        forward = {"Type": "forward", "TargetGroupArn": target}
        await self.aws.call(
            "elbv2",
            "CreateListener",
            LoadBalancerArn=balancer,
            Protocol="TCP",
            Port=port,
            DefaultActions=[forward],
        )


@pytest.fixture(scope="module")
def moto_server() -> Iterator[str]:
    with moto() as server:
        yield server


@pytest.fixture
async def double(moto_server: str) -> AsyncIterator[AwsDouble]:
    async with AwsDouble(moto_server) as double:
        yield double


@pytest.fixture
async def aws(double: AwsDouble) -> AsyncIterator[AwsClient]:
    """Yield a client with the credentials of the network's owner."""
    async with double.client(REGION) as client:
        yield client


@pytest.fixture
async def vpc(aws: AwsClient) -> Vpc:
    """Create a complete network in zones a and b."""
    vpc = await Vpc.create(aws, Name="shop", stage="test")
    await vpc.add_private("a", 1)
    await vpc.add_private("b", 2)
    return vpc


# The cluster


class Site:
    """An AWSCluster, and the manager that fills it."""

    def __init__(
        self, client: RecordingClient, double: AwsDouble, namespace: str, managed: Managed
    ) -> None:
        self.client = client
        self.double = double
        self.namespace = namespace
        self.managed = managed
        self.key = Key(namespace, "demo")
        self.credentials = Key(namespace, "aws")

    async def give_credentials(self, key: str = "test", value: str = "test") -> None:
        data = {"accessKeyID": key, "secretAccessKey": value}
        obj: JsonObject = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "aws", "namespace": self.namespace},
            "stringData": data,
        }
        await self.client.apply(obj, manager="test", force=True)

    async def create(self, annotations: dict[str, str], **spec: Any) -> None:
        said = {MANAGED_BY: "pergola", SOURCE: "aws", **annotations}
        obj = infra_cluster(AWS_CLUSTER, "demo", self.namespace, said, **{"region": REGION, **spec})
        await self.client.create(obj)
        await self.client.create(cluster("demo", self.namespace, AWS_CLUSTER))

    async def annotate(self, **annotations: str | None) -> None:
        """Change annotations; any change makes the manager read the network again."""
        names = {"touch": "example.org/touch", "vpc": AWS_VPC, "balancer": AWS_LOAD_BALANCER}
        change = {names[name]: value for name, value in annotations.items()}
        await self.client.patch(AWS_CLUSTER, self.key, {"metadata": {"annotations": change}})

    @asynccontextmanager
    async def managing(self, *, resync_seconds: float = 600.0) -> AsyncIterator["Site"]:
        """Run the external manager, with only the credentials in the Secret."""
        aws = AwsSettings(self.credentials, endpoint_url=self.double.url, retry=QUICK)
        async with AwsSource(self.client, aws) as source:
            self.unit = external_manager(
                self.client,
                self.managed,
                {"plain": PlainSource(self.client), "aws": source},
                Settings(namespace=self.namespace, resync_seconds=resync_seconds),
                metrics=Metrics(),
            )
            async with running(self.unit):
                yield self

    async def until_ready(self, status: str, reason: str, *, said: str = "") -> JsonObject:
        def holds(obj: JsonObject) -> bool:
            found = ready(obj)
            return found[:2] == (status, reason) and said in found[2]

        return await until(self.client, AWS_CLUSTER, self.key, holds)

    async def settled(self) -> None:
        await settled(self.unit, self.client)

    def written(self) -> list[str]:
        return [write for write in self.client.taken() if " AWSCluster " in write]


def ready(obj: JsonObject) -> tuple[str, str, str]:
    found = get_condition(maps_at(obj, "status", "conditions"), "Ready") or {}
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def sentences(obj: JsonObject) -> list[str]:
    return ready(obj)[2].split("; ")


def domains(obj: JsonObject) -> dict[str, bool]:
    return {
        name: value["controlPlane"]
        for name, value in map_at(obj, "status", "failureDomains").items()
    }


@pytest.fixture
async def site(infra_client: RecordingClient, double: AwsDouble, namespace: str) -> Site:
    await install(infra_client, *await aws_provider_crds())
    managed = await managed_kind(infra_client, AWS_CLUSTER.group_kind)
    site = Site(infra_client, double, namespace, managed)
    await site.give_credentials()
    infra_client.taken()
    return site


# Must hold (5)


async def test_a_complete_network_takes_one_apply_and_one_status_write_and_then_none(
    site: Site, vpc: Vpc
) -> None:
    node = await vpc.group("node", "node")
    balancer = await vpc.balancer("api", 6443)
    await site.create({AWS_VPC: vpc.id, AWS_LOAD_BALANCER: "api"})
    site.client.taken()
    async with site.managing():
        obj = await site.until_ready("True", "NetworkReady")
        await site.settled()
        await site.annotate(touch="1")
        await site.settled()
    assert site.written() == [
        f"apply AWSCluster {site.key}",
        f"patch/status AWSCluster {site.key}",
        f"patch AWSCluster {site.key}",  # the test's own request
    ]
    network = obj["spec"]["network"]
    assert network["vpc"] == {
        "id": vpc.id,
        "cidrBlock": "10.0.0.0/16",
        "internetGatewayId": vpc.internet,
        "tags": {"Name": "shop", "stage": "test"},
        "availabilityZoneSelection": "Ordered",  # the CRD's own defaults
        "availabilityZoneUsageLimit": 3,
        "subnetSchema": "PreferPrivate",
    }
    found = {subnet["id"]: subnet for subnet in network["subnets"]}
    assert set(found) == {vpc.public, *vpc.private.values()}
    assert found[vpc.public] == {
        "id": vpc.public,
        "resourceID": vpc.public,
        "cidrBlock": "10.0.0.0/24",
        "availabilityZone": "eu-west-1a",
        "zoneType": "availability-zone",
        "routeTableId": vpc.tables[vpc.public],
        "natGatewayId": vpc.nat,
        "isPublic": True,
    }
    assert not found[vpc.private["b"]]["isPublic"]
    assert network["securityGroupOverrides"] == {"node": node}
    assert obj["spec"]["controlPlaneEndpoint"] == {"host": balancer["DNSName"], "port": 6443}
    assert obj["status"]["ready"] is True
    assert domains(obj) == {"eu-west-1a": True, "eu-west-1b": True}
    status = obj["status"]["networkStatus"]
    assert status["apiServerElb"] == {
        "name": "api",
        "dnsName": balancer["DNSName"],
        "scheme": "internal",
    }
    assert (status["securityGroups"]["node"]["id"], status["securityGroups"]["node"]["name"]) == (
        node,
        "node",
    )


async def test_a_users_endpoint_is_kept_and_the_finding_names_both(site: Site, vpc: Vpc) -> None:
    balancer = await vpc.balancer("api", 6443)
    mine = {"host": "mine.example.org", "port": 443}
    await site.create({AWS_VPC: vpc.id, AWS_LOAD_BALANCER: "api"}, controlPlaneEndpoint=mine)
    async with site.managing():
        obj = await site.until_ready("False", "Conflict")
    assert obj["spec"]["controlPlaneEndpoint"] == mine
    assert "mine.example.org" in ready(obj)[2]
    assert balancer["DNSName"] in ready(obj)[2]


async def test_the_ipv6_of_the_network_is_filled_on_request(
    site: Site, vpc: Vpc, aws: AwsClient
) -> None:
    await aws.call("ec2", "AssociateVpcCidrBlock", VpcId=vpc.id, AmazonProvidedIpv6CidrBlock=True)
    answer = await aws.call("ec2", "CreateEgressOnlyInternetGateway", VpcId=vpc.id)
    gateway = answer["EgressOnlyInternetGateway"]["EgressOnlyInternetGatewayId"]
    await vpc.balancer("api", 6443)
    annotations = {AWS_VPC: vpc.id, AWS_LOAD_BALANCER: "api"}
    await site.create(annotations, network={"vpc": {"ipv6": {}}})

    async with site.managing():
        obj = await site.until_ready("True", "NetworkReady")

    found = map_at(obj, "spec", "network", "vpc", "ipv6")
    assert found["egressOnlyInternetGatewayId"] == gateway
    assert found["cidrBlock"].endswith("::/56")


async def test_only_describe_calls_are_made_and_the_policy_allows_exactly_these(
    site: Site, vpc: Vpc, aws: AwsClient
) -> None:
    await vpc.balancer("api", 6443)
    other = await Vpc.create(aws)
    group = await other.group("other")
    site.credentials = await limited(site, aws)
    await site.double.authenticate()
    await site.create(
        {
            AWS_VPC: vpc.id,
            AWS_LOAD_BALANCER: "api",
            # This also makes it ask for groups of other VPCs.
            AWS_SECURITY_GROUPS: f"node={group}",
        },
        network={"vpc": {"ipv6": {}}},
    )
    site.double.taken()
    async with site.managing():
        await site.until_ready("False", "NetworkIncomplete", said=group)
        await site.annotate(balancer="no-such-one")
        await site.until_ready("False", "NetworkIncomplete", said="no-such-one")
    calls = set(site.double.taken())
    actions = {call.replace(" ", ":") for call in calls}
    allowed = set(iam_policy()["Statement"][0]["Action"])
    assert actions - {"sts:GetCallerIdentity"} == allowed


async def limited(site: Site, aws: AwsClient) -> Key:
    """Create an identity with our shipped policy, and return the Secret with its keys."""
    await aws.call("iam", "CreateUser", UserName="pergola")
    document = orjson.dumps(iam_policy()).decode()
    policy = await aws.call("iam", "CreatePolicy", PolicyName="pergola", PolicyDocument=document)
    arn = policy["Policy"]["Arn"]
    await aws.call("iam", "AttachUserPolicy", UserName="pergola", PolicyArn=arn)
    answer = await aws.call("iam", "CreateAccessKey", UserName="pergola")
    keys = answer["AccessKey"]
    await site.give_credentials(keys["AccessKeyId"], keys["SecretAccessKey"])
    return site.credentials


# Which network (step 3)


async def test_a_vpc_can_be_found_by_its_tags(site: Site, vpc: Vpc, aws: AwsClient) -> None:
    await Vpc.create(aws, Name="shop", stage="live")
    given = {"host": "api.example.org", "port": 6443}
    await site.create({AWS_VPC_TAGS: "Name=shop,stage=test"}, controlPlaneEndpoint=given)
    async with site.managing():
        obj = await site.until_ready("True", "NetworkReady")
    assert obj["spec"]["network"]["vpc"]["id"] == vpc.id
    assert obj["spec"]["controlPlaneEndpoint"] == given


async def test_no_vpc_and_several_are_reported_and_nothing_else_is_written(
    site: Site, vpc: Vpc, aws: AwsClient
) -> None:
    other = await Vpc.create(aws, Name="shop")
    await site.create({AWS_VPC_TAGS: "Name=shop"})
    async with site.managing():
        obj = await site.until_ready("False", "SourceNotFound")
        assert vpc.id in ready(obj)[2]
        assert other.id in ready(obj)[2]
        await site.client.patch(
            AWS_CLUSTER,
            site.key,
            {"metadata": {"annotations": {AWS_VPC_TAGS: None, AWS_VPC: "vpc-00000000"}}},
        )
        obj = await site.until_ready("False", "SourceNotFound", said="vpc-00000000")
    assert f"does not exist in region {REGION} of account {ACCOUNT}" in ready(obj)[2]
    assert "network" not in obj["spec"]


async def test_all_invalid_annotations_are_reported_together(site: Site) -> None:
    await site.create({AWS_VPC: "shop", AWS_SECURITY_GROUPS: "nodes=sg-1"}, region="")
    async with site.managing():
        obj = await site.until_ready("False", "SourceInvalid")
    text = ready(obj)[2]
    assert "spec.region is empty" in text
    assert f'annotation {AWS_VPC} is "shop"' in text
    assert '"nodes=sg-1"' in text
    assert site.double.taken() == []


async def test_the_vpc_cannot_be_changed(site: Site, vpc: Vpc, aws: AwsClient) -> None:
    other = await Vpc.create(aws)
    await vpc.balancer("api", 6443)
    await site.create({AWS_VPC: vpc.id, AWS_LOAD_BALANCER: "api"})
    async with site.managing():
        await site.until_ready("True", "NetworkReady")
        await site.annotate(vpc=other.id)
        obj = await site.until_ready("False", "Conflict", said=other.id)
    assert vpc.id in ready(obj)[2]
    assert obj["spec"]["network"]["vpc"]["id"] == vpc.id
    assert obj["status"]["ready"] is True


# What is missing (step 4)


async def test_every_gap_in_a_network_is_reported_in_its_own_sentence(
    site: Site, vpc: Vpc, aws: AwsClient
) -> None:
    cut_off = await vpc.subnet("a", 7)
    await vpc.subnet("c", 8, GatewayId=vpc.internet)
    other = await Vpc.create(aws)
    foreign = await other.group("foreign")
    await vpc.balancer("api")
    await site.create(
        {
            AWS_VPC: vpc.id,
            AWS_LOAD_BALANCER: "api",
            AWS_SECURITY_GROUPS: f"node={foreign},lb=sg-00000000",
            AWS_ACCOUNT: "210987654321",
        }
    )
    async with site.managing():
        obj = await site.until_ready("False", "NetworkIncomplete")
        assert not obj["status"].get("ready")
    found = sentences(obj)
    for finding in (
        f"the credentials are of account {ACCOUNT}, but the network must be in 210987654321",
        f"zone eu-west-1c has no private subnet in {vpc.id}",
        f"security group {foreign} for node is of {other.id}, not of {vpc.id}",
        f"security group sg-00000000 for lb does not exist in region {REGION} of account {ACCOUNT}",
        "load balancer api has no listener",
    ):
        assert finding in found
    (route,) = (finding for finding in found if "no route out" in finding)
    assert route.startswith(f"subnet {cut_off} in eu-west-1a has no route out: its route table ")
    assert vpc.tables[cut_off] in route
    assert found[-1].startswith("no control plane endpoint is known")
    # The second half of each sentence says what to do, except for the last one, of the manager.
    assert len(found) == 13


async def test_a_repaired_network_becomes_ready(site: Site, vpc: Vpc) -> None:
    cut_off = await vpc.subnet("c", 7)
    balancer = await vpc.balancer("api", 443)
    await site.create({AWS_VPC: vpc.id, AWS_LOAD_BALANCER: balancer["LoadBalancerArn"]})
    async with site.managing():
        await site.until_ready("False", "NetworkIncomplete", said=cut_off)
        await vpc.route(cut_off, NatGatewayId=vpc.nat)
        await site.annotate(touch="1")
        obj = await site.until_ready("True", "NetworkReady")
    assert set(domains(obj)) == {"eu-west-1a", "eu-west-1b", "eu-west-1c"}
    assert obj["spec"]["controlPlaneEndpoint"]["port"] == 443


async def test_a_classic_load_balancer_works_too(site: Site, vpc: Vpc, aws: AwsClient) -> None:
    listener = {"Protocol": "TCP", "LoadBalancerPort": 8443, "InstancePort": 6443}
    answer = await aws.call(
        "elb",
        "CreateLoadBalancer",
        LoadBalancerName="old",
        Listeners=[listener],
        Subnets=[vpc.public],
        Scheme="internal",
    )
    await site.create({AWS_VPC: vpc.id, AWS_LOAD_BALANCER: "old"})
    async with site.managing():
        obj = await site.until_ready("True", "NetworkReady")
    assert obj["spec"]["controlPlaneEndpoint"] == {"host": answer["DNSName"], "port": 8443}


# A network that changes (step 7)


async def test_failure_domains_follow_the_network_at_the_next_resync(site: Site, vpc: Vpc) -> None:
    await vpc.balancer("api", 6443)
    await site.create({AWS_VPC: vpc.id, AWS_LOAD_BALANCER: "api"})
    async with site.managing(resync_seconds=0.5):
        await site.until_ready("True", "NetworkReady")
        await vpc.tag(vpc.private["b"], **{AWS_CONTROL_PLANE_TAG: "false"})
        await vpc.add_private("c", 9)
        expected = {"eu-west-1a": True, "eu-west-1b": False, "eu-west-1c": True}
        await until(site.client, AWS_CLUSTER, site.key, lambda obj: domains(obj) == expected)
        await vpc.aws.call("ec2", "DeleteSubnet", SubnetId=vpc.private["b"])
        del expected["eu-west-1b"]
        obj = await until(site.client, AWS_CLUSTER, site.key, lambda obj: domains(obj) == expected)
    assert vpc.private["b"] not in [subnet["id"] for subnet in obj["spec"]["network"]["subnets"]]


async def test_only_the_requested_zones_are_used(site: Site, vpc: Vpc) -> None:
    await vpc.subnet("c", 8)  # without a route out, which is irrelevant here
    await vpc.balancer("api", 6443)
    await site.create({AWS_VPC: vpc.id, AWS_LOAD_BALANCER: "api", AWS_ZONES: "eu-west-1b"})
    async with site.managing():
        obj = await site.until_ready("True", "NetworkReady")
    assert domains(obj) == {"eu-west-1b": True}


async def test_a_missing_load_balancer_is_reported_and_the_endpoint_is_kept(
    site: Site, vpc: Vpc, aws: AwsClient
) -> None:
    balancer = await vpc.balancer("api", 6443)
    await site.create({AWS_VPC: vpc.id, AWS_LOAD_BALANCER: "api"})
    async with site.managing():
        before = await site.until_ready("True", "NetworkReady")
        await aws.call("elbv2", "DeleteLoadBalancer", LoadBalancerArn=balancer["LoadBalancerArn"])
        await site.annotate(touch="1")
        obj = await site.until_ready("False", "NetworkIncomplete", said="does not exist")
        assert "apiServerElb" not in obj["status"]["networkStatus"]
        await vpc.balancer("api", 443)  # with the same name: moto has no other
        await site.annotate(touch="2")
        obj = await site.until_ready("False", "NetworkIncomplete", said="cannot change")
    assert obj["spec"]["controlPlaneEndpoint"] == before["spec"]["controlPlaneEndpoint"]
    assert obj["status"]["ready"] is True


# Taken over from the AWS provider


async def test_the_status_of_a_cluster_that_the_provider_released_is_maintained(
    site: Site, vpc: Vpc
) -> None:
    await vpc.balancer("api", 6443)
    await site.create({AWS_VPC: vpc.id, AWS_LOAD_BALANCER: "api"})
    left: list[JsonObject] = [
        {"type": kind, "status": status, "lastTransitionTime": "2030-01-01T00:00:00Z", **more}
        for kind, status, more in (
            ("Ready", "True", {}),
            ("LoadBalancerReady", "False", {"reason": "Waiting", "severity": "Info"}),
            ("Paused", "True", {"reason": "Paused"}),
        )
    ]
    change: JsonObject = {"status": {"ready": True, "conditions": left}}
    await site.client.patch(AWS_CLUSTER, site.key, change, subresource="status")
    async with site.managing():
        obj = await site.until_ready("True", "NetworkReady")
        conditions = {each["type"]: each for each in maps_at(obj, "status", "conditions")}
        assert conditions["Paused"]["status"] == "False"
        assert conditions["LoadBalancerReady"] == left[1]
        await vpc.aws.call("ec2", "DeleteSubnet", SubnetId=vpc.private["b"])
        await site.annotate(touch="1")
        await until(site.client, AWS_CLUSTER, site.key, lambda obj: len(domains(obj)) == 1)


# Rejections by the provider's CRD


async def test_a_network_that_the_crd_rejects_is_explained(site: Site) -> None:
    described: JsonObject = {"endpoint": {"host": "api.example.org", "port": 6443}}
    wrong = dump({**described, "spec": {"network": {"vpc": {"idd": "vpc-1"}}}})
    await site.client.create({**config_map("net", site.namespace), "data": {"network.yaml": wrong}})
    await site.create({SOURCE: "configmap/net"})
    async with site.managing():
        obj = await site.until_ready("False", "SpecRefused", said=".spec.network.vpc.idd")
        assert "controlPlaneEndpoint" not in obj["spec"]
        change = {"data": {"network.yaml": dump(described)}}
        await site.client.patch(CONFIG_MAP, Key(site.namespace, "net"), change)
        await site.until_ready("True", "NetworkReady")


async def test_a_status_that_the_crd_rejects_is_an_event(site: Site, vpc: Vpc) -> None:
    await vpc.balancer("api", 6443)
    await site.create({AWS_VPC: vpc.id, AWS_LOAD_BALANCER: "api"})
    site.managed = replace(site.managed, contract=site.managed.contract._replace(version="v1beta2"))
    async with site.managing():
        async with asyncio.timeout(PATIENCE):
            while not (events := await site.client.list(EVENT, site.namespace)):
                pass
    (event,) = events
    assert (event["type"], event["reason"]) == ("Warning", "StatusRefused")
    assert "status.failureDomains" in event["note"]


# AWS in trouble


@pytest.mark.parametrize(
    ("code", "status"), [("RequestLimitExceeded", 503), ("InternalError", 500)]
)
async def test_throttling_and_errors_of_aws_are_retried(
    site: Site, vpc: Vpc, code: str, status: int
) -> None:
    await vpc.balancer("api", 6443)
    site.double.fail("DescribeSubnets", code, status=status, times=2)
    await site.create({AWS_VPC: vpc.id, AWS_LOAD_BALANCER: "api"})
    site.double.taken()
    async with site.managing():
        await site.until_ready("True", "NetworkReady")
    assert site.double.taken().count("ec2 DescribeSubnets") >= 3


async def test_an_outage_of_aws_changes_nothing_until_it_ends(site: Site, vpc: Vpc) -> None:
    await vpc.balancer("api", 6443)
    await site.create({AWS_VPC: vpc.id, AWS_LOAD_BALANCER: "api"})
    async with site.managing():
        before = await site.until_ready("True", "NetworkReady")
        await site.settled()
        site.double.taken()
        site.double.fail("DescribeSubnets", "ServiceUnavailable", status=503, times=1000)
        await site.annotate(touch="1")
        async with asyncio.timeout(PATIENCE):
            while "ec2 DescribeSubnets" not in site.double.taken():
                await site.client.get(AWS_CLUSTER, site.key)
        obj = await site.client.get(AWS_CLUSTER, site.key)
        assert obj["status"] == before["status"]
        await vpc.add_private("c", 9)
        site.double.heal()
        await until(site.client, AWS_CLUSTER, site.key, lambda obj: len(domains(obj)) == 3)


async def test_rejected_credentials_are_reported_and_nothing_is_lost(
    site: Site, vpc: Vpc, aws: AwsClient
) -> None:
    await vpc.balancer("api", 6443)
    await site.create({AWS_VPC: vpc.id, AWS_LOAD_BALANCER: "api"})
    async with site.managing():
        before = await site.until_ready("True", "NetworkReady")
        await limited(site, aws)
        await site.give_credentials("AKIAWRONG", "very-secret")
        await site.double.authenticate()
        await site.annotate(touch="1")
        obj = await site.until_ready("False", "CredentialsInvalid")
        text = ready(obj)[2]
        assert text.startswith("sts GetCallerIdentity in eu-west-1: AWS does not accept")
        assert "very-secret" not in text
        assert "AKIAWRONG" not in text
        assert obj["spec"] == before["spec"]
        assert obj["status"]["ready"] is True
        assert domains(obj) == domains(before)
        await site.double.authenticate(after=None)
        await site.give_credentials()
        await site.annotate(touch="2")
        await site.until_ready("True", "NetworkReady")


async def test_missing_permissions_of_the_credentials_are_named(site: Site, vpc: Vpc) -> None:
    site.double.fail(
        "DescribeVpcs",
        "UnauthorizedOperation",
        status=403,
        message="You are not authorized. Encoded authorization failure message: abcdef",
    )
    await site.create({AWS_VPC: vpc.id})
    async with site.managing():
        obj = await site.until_ready("False", "CredentialsInsufficient")
    assert "allow ec2:DescribeVpcs in their IAM policy" in ready(obj)[2]
    assert "abcdef" not in ready(obj)[2]


async def test_a_missing_secret_is_named_and_used_once_it_exists(site: Site, vpc: Vpc) -> None:
    await vpc.balancer("api", 6443)
    await site.client.delete(SECRET, site.credentials)
    await site.create({AWS_VPC: vpc.id, AWS_LOAD_BALANCER: "api"})
    async with site.managing():
        obj = await site.until_ready("False", "CredentialsInvalid")
        assert f"Secret {site.credentials}" in ready(obj)[2]
        await site.give_credentials()
        await site.annotate(touch="1")
        await site.until_ready("True", "NetworkReady")


# Checks for people


async def test_open_rules_and_templates_without_groups_are_only_warnings(
    site: Site, vpc: Vpc, aws: AwsClient
) -> None:
    node = await vpc.group("node", "node")
    ssh = {
        "IpProtocol": "tcp",
        "FromPort": 22,
        "ToPort": 22,
        "IpRanges": [{"CidrIp": "0.0.0.0/0"}],
    }
    await aws.call("ec2", "AuthorizeSecurityGroupIngress", GroupId=node, IpPermissions=[ssh])
    await vpc.balancer("api", 6443)
    await site.create({AWS_VPC: vpc.id, AWS_LOAD_BALANCER: "api"})
    template = infra_cluster(TEMPLATE, "workers", site.namespace)
    template["metadata"]["labels"] = {CLUSTER_NAME: "demo"}
    template["spec"] = {"template": {"spec": {"instanceType": "m5.large"}}}
    await site.client.create(template)
    async with site.managing():
        obj = await site.until_ready("True", "NetworkReady")
    aws_settings = AwsSettings(site.credentials, endpoint_url=site.double.url)
    async with AwsSource(site.client, aws_settings) as source:
        warnings = await source.warnings(obj)
    assert [text.partition(":")[0].partition(";")[0] for text in warnings] == [
        f"security group {node} for node lets tcp 22 in from 0.0.0.0/0",
        f"AWSMachineTemplate {site.namespace}/workers names no security group",
    ]


async def test_the_command_checks_a_network_with_the_keys_in_its_environment(
    site: Site, vpc: Vpc, kubeconfig: Path
) -> None:
    given = {"host": "api.example.org", "port": 6443}
    await site.create({AWS_VPC: vpc.id}, controlPlaneEndpoint=given)
    async with site.managing():
        await site.until_ready("True", "NetworkReady")
        assert await check(site, kubeconfig) == (
            0,
            f"AWSCluster {site.key} and its network are complete",
        )
        cut_off = await vpc.subnet("c", 7)
        code, said = await check(site, kubeconfig)
    assert code == 1
    assert f"error: subnet {cut_off} in eu-west-1c has no route out" in said


async def check(site: Site, kubeconfig: Path) -> tuple[int, str]:
    """Return the exit code and the output of `pergola infra check`."""
    kind = f"{AWS_CLUSTER.kind}.{AWS_CLUSTER.group}"
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).parent / "pergola",
        *("infra", "check", "demo", "--kind", kind, "-n", site.namespace),
        *("--kubeconfig", kubeconfig),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **keys, "AWS_ENDPOINT_URL": site.double.url},
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode().strip()
