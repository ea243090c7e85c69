"""A Service of a Shoot on AWS gets a load balancer, by the real cloud controller manager.

It runs with the arguments that Pergola renders, on the Seed, against the simulated AWS.
"""

import asyncio
from typing import Final

import pytest

from pergola.api.kinds import SEED, SERVICE, SHOOT
from pergola.api.objects import JsonObject, Key
from pergola.cloud.aws import AwsClient
from pergola.providers.aws.desired import ROLE_INTERNAL, ROLE_PUBLIC
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import Network, everything
from pergola.sandbox.landscape import in_aws
from pergola.sandbox.landscape.aws import REGION
from pergola.sandbox.on_demand import AWS_CLOUD_CONTROLLER_MANAGER
from pergola.testing.waiting import until, until_gone
from tests.support.aws.cloud_balancers import classic, ingress
from tests.support.landscape import PATIENCE, World
from tests.support.landscape_machines import ZONES, create_shoot_with_machines, pool

pytestmark = [
    pytest.mark.soak("landscape"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(1800),
]

_NODES: Final = "10.250.0.0/16"
"""The addresses of nodes in the example."""
_SERVICE: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": SERVICE.kind,
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
}


async def test_a_service_gets_an_address_in_the_subnets_of_the_user(
    landscape_on_aws: World, aws: CorrectedAws
) -> None:
    landscape = landscape_on_aws
    programs = await asyncio.to_thread(in_aws, aws.url, AWS_CLOUD_CONTROLLER_MANAGER)
    async with (
        aws.client(REGION) as account,
        landscape.opened_seed("clouds", programs=programs) as seed,
    ):
        await landscape.join(seed)
        network = await Network.complete(account, zones="ab", cidr=_NODES)
        config = network.config(group=await network.security_group())
        config["networks"]["vpc"]["cidr"] = None  # removes that of the example
        # The tags of roles stay, because other clusters may use them (spec 30 §8.2).
        for subnet in network.public.values():
            await network.tag(subnet, **{ROLE_PUBLIC: "1"})
        for subnet in network.internal.values():
            await network.tag(subnet, **{ROLE_INTERNAL: "1"})
        before = await settled(account)
        machines = pool("one", minimum=2, maximum=2, zones=[*ZONES[:2]])
        shoot = await create_shoot_with_machines(
            landscape, account, seed, "balanced", machines, infrastructure=config
        )
        await shoot.until_nodes_run(2)

        async with landscape.client_of(shoot.key, seed) as client:
            service = await client.create(_SERVICE)
            live = await until(
                client, SERVICE, Key.of(service), lambda obj: bool(ingress(obj)), patience=PATIENCE
            )
            balancer = await classic(account, live)
            assert ingress(live) == [{"hostname": balancer.hostname}]
            assert balancer.subnets == {*network.public.values()}
            instances = {each["InstanceId"] for each in (await shoot.instances()).values()}
            assert balancer.targets == instances
            await client.delete(SERVICE, Key.of(service))
            await until_gone(client, SERVICE, Key.of(service))
        answer = await account.call("elb", "DescribeLoadBalancers")
        assert answer["LoadBalancerDescriptions"] == []

        await landscape.delete(SHOOT, shoot.key)
        assert await settled(account) == before
        await landscape.delete(SEED, Key("", seed.name))


async def settled(account: AwsClient) -> dict[str, JsonObject]:
    """Return everything in an account once nothing of it is being created.

    Without the numbers of free addresses: moto does not free those of terminated instances.
    """
    found = await everything(account)
    while any(each.get("State") == "pending" for each in found.values()):
        found = await everything(account)
    for each in found.values():
        each.pop("AvailableIpAddressCount", None)
    return found
