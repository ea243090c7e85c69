"""Conditions about user-provided resources: spec 30 §6.4, Beyond 10, with moto as AWS."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.cloud.aws import AwsClient
from pergola.extension_api.cluster import Cluster, Shoot
from pergola.extension_api.errors import Code
from pergola.extensions.health_checks import CheckContext, Verdict
from pergola.kube.client import Client
from pergola.providers.aws.health.checks import health_checks
from pergola.providers.aws.health.security_group import NODES_SECURITY_GROUP_VALID
from pergola.providers.aws.resources.security_group.rules import ALL, INGRESS, Rule, permissions
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import Network
from tests.support.aws.steps import TECHNICAL_ID

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DONE: JsonObject = {"type": "Reconcile", "state": "Succeeded", "lastUpdateTime": "x"}


class Conditions:
    """The conditions of an Infrastructure, evaluated on demand."""

    def __init__(self, client: AwsClient, network: Network, group: str) -> None:
        self.client = client
        self.obj: JsonObject = {
            "metadata": {"name": "web", "namespace": TECHNICAL_ID, "uid": "u"},
            "spec": {"region": client.region, "providerConfig": network.config(group=group)},
            "status": {"lastOperation": DONE},
        }
        self._group, self._subnets = health_checks(self._access)

    async def group(self, after: float = 0) -> Verdict:
        assert self._group.applies(self.obj)
        return await self._group.run(self._context(after), self.obj)

    async def subnets(self, after: float = 0) -> Verdict:
        assert self._subnets.applies(self.obj)
        return await self._subnets.run(self._context(after), self.obj)

    def _context(self, after: float) -> CheckContext:
        async def read(gvk: GroupVersionKind, key: Key) -> JsonObject | None:
            raise AssertionError(f"{gvk} {key} is not needed")

        async def cluster() -> Cluster:
            return Cluster(TECHNICAL_ID, Shoot({}))

        return CheckContext(
            client=cast("Client", None),  # these checks read AWS
            read=read,
            cluster=cluster,
            namespace=TECHNICAL_ID,
            now=NOW + timedelta(seconds=after),
        )

    @asynccontextmanager
    async def _access(self, context: CheckContext, obj: JsonObject) -> AsyncIterator[AwsClient]:
        del context, obj
        yield self.client


@pytest.fixture
async def network(client: AwsClient) -> Network:
    return await Network.complete(client, zones=("a", "b"))


async def test_a_revoked_rule_is_reported_within_a_period(
    aws: CorrectedAws, client: AwsClient, network: Network
) -> None:
    group = await network.security_group()
    conditions = Conditions(client, network, group)
    assert (await conditions.group()).status == "True"
    rules = permissions([Rule(INGRESS, ALL, None, group)], INGRESS)
    await client.call("ec2", "RevokeSecurityGroupIngress", GroupId=group, IpPermissions=rules)

    verdict = await conditions.group(after=600)

    assert verdict.status == "False"
    assert f"ingress all traffic from {group}" in verdict.detail


async def test_aws_is_read_once_in_a_period_and_after_each_reconciliation(
    aws: CorrectedAws, client: AwsClient, network: Network
) -> None:
    conditions = Conditions(client, network, await network.security_group())
    aws.taken()

    for after in (0, 30, 599):
        await conditions.group(after)
    assert aws.taken() == ["ec2 DescribeSecurityGroups"]

    conditions.obj["status"] = {"lastOperation": {**DONE, "lastUpdateTime": "y"}}
    await conditions.group(600)
    assert aws.taken() == ["ec2 DescribeSecurityGroups"]


async def test_after_a_restart_an_infrastructure_is_read_only_when_its_period_is_over(
    aws: CorrectedAws, client: AwsClient, network: Network
) -> None:
    conditions = Conditions(client, network, await network.security_group())
    recorded = {
        "type": NODES_SECURITY_GROUP_VALID,
        "status": "False",
        "reason": "R",
        "message": "m",
    }
    conditions.obj["status"]["conditions"] = [recorded]
    aws.taken()

    assert await conditions.group() == Verdict(
        "False", "m", (Code.CONFIGURATION_PROBLEM,), reason="R"
    )
    assert aws.taken() == []
    assert (await conditions.group(after=600)).status == "True"
    assert aws.taken() == ["ec2 DescribeSecurityGroups"]


async def test_a_deleted_group_is_reported(client: AwsClient, network: Network) -> None:
    group = await network.security_group()
    await client.call("ec2", "DeleteSecurityGroup", GroupId=group)

    verdict = await Conditions(client, network, group).group()

    assert (verdict.status, verdict.detail) == ("False", f"security group {group} does not exist")


async def test_missing_subnets_for_load_balancers_are_reported(
    client: AwsClient, network: Network
) -> None:
    conditions = Conditions(client, network, "")
    conditions.obj["spec"]["providerConfig"] = network.config(balancers=False)

    before = await conditions.subnets()
    for zone in "ab":
        tags = {f"kubernetes.io/cluster/{TECHNICAL_ID}": "shared", "kubernetes.io/role/elb": "1"}
        await network.tag(network.public[zone], **tags)
    after = await conditions.subnets(after=600)

    assert (before.status, after.status) == ("False", "True")
    assert "Services of type LoadBalancer stay pending" in before.detail
