"""Shoots with machines in networks that users bring, in the patterns that other cases do not have.

`test_machines_on_aws` has a network that Pergola creates, and `test_services_and_claims_on_aws` one
with subnets for load balancers.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from pergola.api.kinds import SHOOT
from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.sandbox.aws.world import Network, managed_config
from pergola.sandbox.landscape.aws import REGION
from tests.support.landscape import SeedCluster, World
from tests.support.landscape_aws import settled
from tests.support.landscape_machines import (
    ZONES,
    create_shoot_with_machines,
    parts_of,
    pool,
    zones_of,
)

pytestmark = [
    pytest.mark.soak("landscape"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(1800),
]

_PREFIX: Final = "10.250"
_NODES: Final = f"{_PREFIX}.0.0/16"
"""The addresses of nodes in the example."""
_Build = Callable[[AwsClient], Awaitable[JsonObject]]


async def private(account: AwsClient) -> JsonObject:
    """Build subnets without an internet gateway, and none for load balancers (pattern 3)."""
    network = await Network.create(account, zones="abc", cidr=_NODES)
    return network.config(group=await network.security_group())


async def without_public_subnets(account: AwsClient) -> JsonObject:
    """Build a VPC for subnets without NAT, with gateway endpoints (pattern 4)."""
    network = await Network.create(account, zones="", cidr=_NODES)
    config = managed_config(REGION, zones="abc", vpc=network.id, public=False, prefix=_PREFIX)
    config["networks"]["vpc"]["gatewayEndpoints"] = ["s3", "dynamodb"]
    return config


async def own_firewall(account: AwsClient) -> JsonObject:
    """Build a VPC with a security group for nodes (pattern 5)."""
    network = await Network.create(account, zones="", cidr=_NODES)
    await network.add_gateway()
    config = managed_config(REGION, zones="abc", vpc=network.id, prefix=_PREFIX)
    config["networks"]["nodesSecurityGroupID"] = await network.security_group()
    return config


@pytest.mark.parametrize(
    ("name", "build"),
    [("private", private), ("nopublic", without_public_subnets), ("firewall", own_firewall)],
)
async def test_two_pools_in_three_zones_use_the_network_of_the_user_and_leave_it_as_it_was(
    landscape_on_aws: World, account: AwsClient, seed: SeedCluster, name: str, build: _Build
) -> None:
    landscape = landscape_on_aws
    config = await build(account)
    networks = config["networks"]
    before = await settled(account)
    networks["vpc"]["cidr"] = None  # removes that of the example
    shoot = await create_shoot_with_machines(
        landscape, account, seed, name, pool("one"), pool("two"), infrastructure=config
    )

    await shoot.until_nodes_run(6)
    instances = await shoot.instances()
    assert zones_of(instances) == sorted(ZONES * 2)
    assert {each["VpcId"] for each in instances.values()} == {networks["vpc"]["id"]}
    if group := networks.get("nodesSecurityGroupID"):
        groups = {each["GroupId"] for one in instances.values() for each in one["SecurityGroups"]}
        assert groups == {group}
    if subnets := {each.get("workersSubnetID") for each in networks["zones"]} - {None}:
        assert {each["SubnetId"] for each in instances.values()} == subnets

    await landscape.delete(SHOOT, shoot.key)
    assert await settled(account) == before
    assert await parts_of(account, instances) == []
