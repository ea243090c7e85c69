"""Bastions: spec 30 §10.1, on the API server and with moto as AWS."""

import base64
import gzip
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from pergola.api.bastion_v1alpha1 import BASTION
from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
from pergola.api.kinds import EVENT
from pergola.api.objects import JsonObject, Key
from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import tags_of
from pergola.extension_api.cluster import Cluster, Shoot
from pergola.extension_api.errors import Code, ExtensionError, RequeueAfter
from pergola.extensions.actuator import Context, Status
from pergola.kube.client import Client
from pergola.kube.errors import Invalid
from pergola.providers.aws.actuator import AwsSettings
from pergola.providers.aws.bastion import AwsBastion
from pergola.providers.aws.resources.security_group.rules import (
    EGRESS,
    INGRESS,
    SSH,
    TCP,
    Direction,
    Rule,
    permissions,
    rules_of,
)
from pergola.runtime.clock import SystemClock
from pergola.sandbox.aws.corrections import QUICK, CorrectedAws
from pergola.sandbox.aws.world import Network
from pergola.testing.crds import install_extension_crds
from tests.support.aws.gardens import KEYS
from tests.support.aws.site import AMI, CLOUD_PROFILE, REGION
from tests.support.objects import secret


@dataclass
class BastionSite:
    """A control plane namespace with a reconciled Infrastructure, and a Bastion."""

    kube: Client
    namespace: str
    aws: CorrectedAws
    client: AwsClient
    network: Network
    nodes: str
    actuator: AwsBastion
    families: list[str] = field(default_factory=lambda: ["IPv4"])
    ingress: list[str] = field(default_factory=lambda: ["10.1.2.3/16", "192.0.2.7/32"])
    excepted: list[str] = field(default_factory=list)
    user_data: bytes = b"#!/bin/sh\n"

    @property
    def bastion(self) -> JsonObject:
        excepted = {"except": self.excepted} if self.excepted else {}
        return {
            "apiVersion": "extensions.gardener.cloud/v1alpha1",
            "kind": "Bastion",
            "metadata": {"name": "cli-1", "namespace": self.namespace, "uid": "uid-1"},
            "spec": {
                "type": "aws",
                "userData": base64.b64encode(self.user_data).decode(),
                "ingress": [{"ipBlock": {"cidr": cidr, **excepted}} for cidr in self.ingress],
            },
        }

    @property
    def name(self) -> str:
        return f"{self.namespace}-cli-1"

    async def infrastructure(self, *, public: bool = True, group: str = "") -> None:
        """Create an Infrastructure in the state after a reconciliation."""
        networks: JsonObject = {"vpc": {"id": self.network.id}}
        if group:
            self.nodes = networks["nodesSecurityGroupID"] = group
        secret = {"name": "cloudprovider", "namespace": self.namespace}
        created = await self.kube.apply(
            {
                "apiVersion": INFRASTRUCTURE.api_version,
                "kind": INFRASTRUCTURE.kind,
                "metadata": {"name": "web", "namespace": self.namespace},
                "spec": {
                    "type": "aws",
                    "region": REGION,
                    "secretRef": secret,
                    "providerConfig": {"networks": networks},
                },
            },
            manager="pergola-testing",
            force=True,
        )
        subnets = [{"purpose": "nodes", "id": self.network.workers["a"], "zone": f"{REGION}a"}]
        if public:
            subnets.append(
                {"purpose": "public", "id": self.network.public["a"], "zone": f"{REGION}a"}
            )
        status = {
            "vpc": {
                "id": self.network.id,
                "subnets": subnets,
                "securityGroups": [{"purpose": "nodes", "id": self.nodes}],
            }
        }
        await self.kube.patch(
            INFRASTRUCTURE,
            Key.of(created),
            {"status": {"providerStatus": status}},
            subresource="status",
        )

    def context(self) -> Context:
        async def progress(percent: int, text: str) -> None:
            del percent, text

        async def save(status: Status) -> None:
            del status

        shoot = Shoot({"spec": {"networking": {"ipFamilies": self.families}}})
        return Context(
            client=self.kube,
            cluster=Cluster(self.namespace, shoot=shoot, cloud_profile=CLOUD_PROFILE),
            namespace=self.namespace,
            clock=SystemClock(),
            progress=progress,
            save=save,
        )

    async def reconcile(self) -> Status:
        """Reconcile until the bastion exists."""
        while True:
            try:
                status = await self.actuator.reconcile(self.context(), self.bastion)
            except RequeueAfter:
                continue
            assert status is not None
            return status

    async def delete(self) -> list[float]:
        """Delete until the bastion is gone; return the requested retry intervals."""
        waits: list[float] = []
        while True:
            try:
                await self.actuator.delete(self.context(), self.bastion)
            except RequeueAfter as later:
                waits.append(later.seconds)
                continue
            return waits

    async def group(self, name: str) -> JsonObject | None:
        found = await self.client.pages("ec2", "DescribeSecurityGroups", "SecurityGroups")
        return next((g for g in found if name in (g["GroupName"], g["GroupId"])), None)

    async def instances(self) -> list[JsonObject]:
        found = await self.client.pages("ec2", "DescribeInstances", "Reservations")
        return [
            instance
            for reservation in found
            for instance in reservation["Instances"]
            if instance["State"]["Name"] != "terminated"
        ]

    async def let_in(self, group: str, peer: str, direction: Direction = INGRESS) -> None:
        await self.client.call(
            "ec2",
            "AuthorizeSecurityGroupIngress",
            GroupId=group,
            IpPermissions=permissions([Rule(direction, TCP, SSH, peer)], direction),
        )


@pytest.fixture
async def site(
    cluster_client: Client, namespace: str, aws: CorrectedAws, client: AwsClient
) -> AsyncIterator[BastionSite]:
    await install_extension_crds(cluster_client)
    await cluster_client.create(secret(namespace, "cloudprovider", **KEYS))
    network = await Network.complete(client, zones=("a",))
    nodes = await network.security_group(f"{namespace}-nodes")
    mark = {f"kubernetes.io/cluster/{namespace}": "owned", "Name": f"{namespace}-nodes"}
    await network.tag(nodes, **mark)
    actuator = AwsBastion(AwsSettings(endpoint_url=aws.url, retry=QUICK))
    site = BastionSite(cluster_client, namespace, aws, client, network, nodes, actuator)
    await site.infrastructure()
    aws.writes()
    yield site
    await actuator.close()


async def test_a_bastion_gives_access_to_the_nodes_and_nothing_else(site: BastionSite) -> None:
    status = await site.reconcile()

    own = await site.group(f"{site.name}-bsg")
    nodes = await site.group(site.nodes)
    assert own is not None
    assert nodes is not None
    assert rules_of(own) == {
        Rule(INGRESS, TCP, SSH, "10.1.0.0/16"),
        Rule(INGRESS, TCP, SSH, "192.0.2.7/32"),
        Rule(EGRESS, TCP, SSH, site.nodes),
    }
    assert Rule(INGRESS, TCP, SSH, own["GroupId"]) in rules_of(nodes)
    (instance,) = await site.instances()
    assert (instance["ImageId"], instance["InstanceType"]) == (AMI, "t3.micro")
    assert instance["SubnetId"] == site.network.public["a"]
    assert tags_of(instance) == {
        f"kubernetes.io/cluster/{site.namespace}": "owned",
        "Name": f"{site.name}-bastion",
    }
    assert status["ingress"]["ip"] == instance["PublicIpAddress"]


async def test_a_second_run_writes_nothing(site: BastionSite) -> None:
    await site.reconcile()
    site.aws.writes()

    await site.reconcile()

    assert site.aws.writes() == []


async def test_a_change_of_the_allowed_sources_changes_the_rules(site: BastionSite) -> None:
    await site.reconcile()
    site.ingress = ["198.51.100.0/24"]
    site.aws.writes()

    await site.reconcile()

    assert site.aws.writes() == [
        "ec2 AuthorizeSecurityGroupIngress",
        "ec2 RevokeSecurityGroupIngress",
    ]
    own = await site.group(f"{site.name}-bsg")
    assert own is not None
    sources = {rule.peer for rule in rules_of(own) if rule.direction == INGRESS}
    assert sources == {"198.51.100.0/24"}


async def test_nothing_of_a_deleted_bastion_is_left(site: BastionSite) -> None:
    before = await site.group(site.nodes)
    await site.reconcile()

    waits = await site.delete()

    assert set(waits) <= {10.0}
    assert await site.group(f"{site.name}-bsg") is None
    assert await site.group(site.nodes) == before
    assert await site.instances() == []


async def test_an_instance_and_a_group_of_the_user_with_the_marks_of_a_bastion_outlive_it(
    site: BastionSite,
) -> None:
    mark = {f"kubernetes.io/cluster/{site.namespace}": "owned", "Name": f"{site.name}-bastion"}
    tags = [{"Key": key, "Value": value} for key, value in mark.items()]
    await site.client.call(
        "ec2",
        "RunInstances",
        ImageId=AMI,
        InstanceType="t3.micro",
        MinCount=1,
        MaxCount=1,
        SubnetId=site.network.public["a"],
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )
    users = await site.network.security_group("users", rules=False)
    await site.network.tag(users, **{f"kubernetes.io/cluster/{site.namespace}": "owned"})
    await site.reconcile()
    own = await site.group(f"{site.name}-bsg")
    assert own is not None
    await site.let_in(users, own["GroupId"])
    before = await site.group(users)
    assert len(await site.instances()) == 2
    site.aws.fail("DeleteSecurityGroup", "DependencyViolation")

    with pytest.raises(ExtensionError, match="remove the rule that lets tcp 22 in"):
        await site.delete()

    assert len(await site.instances()) == 1
    assert await site.group(users) == before


async def test_deleting_a_missing_bastion_writes_nothing(site: BastionSite) -> None:
    await site.delete()

    assert site.aws.writes() == []


async def test_without_a_public_subnet_there_is_one_error_and_no_write(
    site: BastionSite,
) -> None:
    await site.infrastructure(public=False)

    with pytest.raises(ExtensionError, match="Session Manager") as raised:
        await site.reconcile()

    assert raised.value.codes == (Code.CONFIGURATION_PROBLEM,)
    assert site.aws.writes() == []


async def test_the_subnet_is_found_in_the_status_whatever_its_name(
    site: BastionSite,
) -> None:
    await site.network.tag(site.network.internal["a"], Name=f"{site.namespace}-public-utility-z0")

    await site.reconcile()

    (instance,) = await site.instances()
    assert instance["SubnetId"] == site.network.public["a"]


async def test_rules_of_a_user_provided_group_are_never_written(site: BastionSite) -> None:
    group = await site.network.security_group("users", rules=False)
    await site.infrastructure(group=group)
    before = await site.group(group)

    await site.reconcile()

    assert await site.group(group) == before
    events = await site.kube.list(EVENT, site.namespace)
    (note,) = (event["note"] for event in events)
    own = await site.group(f"{site.name}-bsg")
    assert own is not None
    assert f"--group-id {group} --protocol tcp --port 22 --source-group {own['GroupId']}" in note


async def test_a_user_provided_group_that_admits_the_bastion_needs_no_change(
    site: BastionSite,
) -> None:
    group = await site.network.security_group("users", rules=False)
    await site.let_in(group, "0.0.0.0/0")
    await site.infrastructure(group=group)

    await site.reconcile()

    assert await site.kube.list(EVENT, site.namespace) == []


async def test_a_bastion_is_deleted_even_if_the_network_is_unknown(
    site: BastionSite,
) -> None:
    await site.reconcile()
    key = Key(site.namespace, "web")
    await site.kube.patch(
        INFRASTRUCTURE, key, {"status": {"providerStatus": None}}, subresource="status"
    )

    await site.delete()

    assert await site.group(f"{site.name}-bsg") is None
    assert await site.instances() == []
    nodes = await site.group(site.nodes)
    assert nodes is not None
    assert not [rule for rule in rules_of(nodes) if rule.ports == SSH]


async def test_without_an_infrastructure_a_bastion_counts_as_deleted(site: BastionSite) -> None:
    await site.kube.delete(INFRASTRUCTURE, Key(site.namespace, "web"))

    await site.delete()

    assert site.aws.taken() == []


async def test_a_rule_for_the_bastion_in_a_user_provided_group_is_reported_for_removal(
    site: BastionSite,
) -> None:
    group = await site.network.security_group("users", rules=False)
    await site.infrastructure(group=group)
    await site.reconcile()
    own = await site.group(f"{site.name}-bsg")
    assert own is not None
    await site.let_in(group, own["GroupId"])
    before = await site.group(group)
    site.aws.fail("DeleteSecurityGroup", "DependencyViolation")

    with pytest.raises(ExtensionError, match="remove the rule that lets tcp 22 in"):
        await site.delete()

    assert await site.group(group) == before


async def test_a_terminated_instance_is_replaced(site: BastionSite) -> None:
    await site.reconcile()
    (before,) = await site.instances()
    await site.client.call("ec2", "TerminateInstances", InstanceIds=[before["InstanceId"]])
    site.aws.fail("RunInstances", "IdempotentInstanceTerminated")

    await site.reconcile()

    (after,) = await site.instances()
    assert after["InstanceId"] != before["InstanceId"]


async def test_an_invalid_bastion_is_reported_before_anything_is_created(
    site: BastionSite,
) -> None:
    site.ingress = ["10.0.0.0/8", "nowhere"]

    with pytest.raises(ExtensionError, match=r'spec.ingress\[1\].ipBlock.cidr: "nowhere"'):
        await site.reconcile()

    site.ingress, site.excepted = ["10.0.0.0/8"], ["10.1.0.0/16"]
    with pytest.raises(ExtensionError, match=r"ingress\[0\].ipBlock.except: .* name the CIDRs"):
        await site.reconcile()

    assert site.aws.writes() == []


async def test_compressed_user_data_reaches_the_instance(site: BastionSite) -> None:
    site.user_data = gzip.compress(b"#!/bin/sh\n")

    await site.reconcile()

    [instance] = await site.instances()
    answer = await site.client.call(
        "ec2",
        "DescribeInstanceAttribute",
        InstanceId=instance["InstanceId"],
        Attribute="userData",
    )
    assert base64.b64decode(answer["UserData"]["Value"]) == site.user_data


async def test_the_user_data_of_a_bastion_is_immutable(
    cluster_client: Client, namespace: str
) -> None:
    await install_extension_crds(cluster_client)
    spec = {"type": namespace, "userData": "YQ==", "ingress": []}
    metadata = {"name": "cli-1", "namespace": namespace}
    bastion = await cluster_client.create(
        {
            "apiVersion": BASTION.api_version,
            "kind": BASTION.kind,
            "metadata": metadata,
            "spec": spec,
        }
    )

    with pytest.raises(Invalid) as raised:
        await cluster_client.patch(BASTION, Key.of(bastion), {"spec": {"userData": "Yg=="}})

    [cause] = raised.value.causes
    assert cause["field"] == "spec.userData"
    assert "field is immutable" in cause["message"]
    peer = {"ipBlock": {"cidr": "192.0.2.0/24"}}
    await cluster_client.patch(BASTION, Key.of(bastion), {"spec": {"ingress": [peer]}})
