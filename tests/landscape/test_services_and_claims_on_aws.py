"""A Shoot on AWS gets load balancers and volumes by the controllers that Pergola renders.

The cloud controller manager, external-provisioner and external-attacher are the originals, and the
driver of EBS is a stand-in. They run on the Seed, against the simulated AWS.
"""

import asyncio
from typing import Final

import pytest

from pergola.api.kinds import POD, PVC, SEED, SERVICE, SHOOT
from pergola.api.objects import JsonObject, Key, name_of
from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import tags_of
from pergola.kube.client import Client
from pergola.providers.aws.desired import ROLE_INTERNAL, ROLE_PUBLIC
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import Network, tags_in, without_tags
from pergola.sandbox.landscape import in_aws
from pergola.sandbox.on_demand import AWS_CLOUD_CONTROLLER_MANAGER
from pergola.testing.waiting import until, until_gone
from tests.support.aws.cloud_balancers import classic, ingress
from tests.support.aws.cloud_volumes import (
    ATTACHMENT,
    PERSISTENT_VOLUME,
    PROGRAMS,
    attachment_key,
    claim_of,
    is_attached,
    is_bound,
    pod_with,
    volume_of,
)
from tests.support.landscape import PATIENCE, World
from tests.support.landscape_aws import settled
from tests.support.landscape_machines import (
    ZONES,
    ShootOnAws,
    create_shoot_with_machines,
    instance_of,
    pool,
)

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


async def test_a_service_gets_an_address_and_a_claim_a_volume_in_the_network_of_the_user(
    landscape_on_aws: World, aws: CorrectedAws, account: AwsClient
) -> None:
    landscape = landscape_on_aws
    names = (AWS_CLOUD_CONTROLLER_MANAGER, *PROGRAMS.values())
    programs = await asyncio.to_thread(in_aws, aws.url, *names)
    async with landscape.opened_seed("clouds", programs=programs) as seed:
        await landscape.join(seed)
        network = await Network.complete(account, zones="ab", cidr=_NODES)
        config = network.config(group=await network.security_group())
        config["networks"]["vpc"]["cidr"] = None  # removes that of the example
        before = await settled(account)
        machines = pool("one", minimum=2, maximum=2, zones=[*ZONES[:2]])
        shoot = await create_shoot_with_machines(
            landscape, account, seed, "balanced", machines, infrastructure=config
        )
        nodes = await shoot.until_nodes_run(2)

        async with landscape.client_of(shoot.key, seed) as client, asyncio.TaskGroup() as both:
            both.create_task(use_balancer(client, shoot, {*network.public.values()}))
            both.create_task(use_volume(client, shoot, nodes))

        await landscape.delete(SHOOT, shoot.key)
        after = await settled(account)
        roles = [(network.public, ROLE_PUBLIC), (network.internal, ROLE_INTERNAL)]
        kept = {f"Subnets/{each}": role for found, role in roles for each in found.values()}
        assert without_tags(after) == without_tags(before)
        # The tags of roles stay, because other clusters may use them (spec 30 §8.2).
        expected = tags_in(before)
        for subnet, role in kept.items():
            expected[subnet] = {**expected.get(subnet, {}), role: "1"}
        assert tags_in(after) == expected
        await landscape.delete(SEED, Key("", seed.name))


async def use_balancer(client: Client, shoot: ShootOnAws, subnets: set[str]) -> None:
    """Create a Service of type LoadBalancer, wait until it has an address, and delete it."""
    service = await client.create(_SERVICE)
    live = await until(
        client, SERVICE, Key.of(service), lambda obj: bool(ingress(obj)), patience=PATIENCE
    )
    balancer = await classic(shoot.account, live)
    assert ingress(live) == [{"hostname": balancer.hostname}]
    assert balancer.subnets == subnets
    instances = {each["InstanceId"] for each in (await shoot.instances()).values()}
    assert balancer.targets == instances
    await client.delete(SERVICE, Key.of(service))
    await until_gone(client, SERVICE, Key.of(service))
    answer = await shoot.account.call("elb", "DescribeLoadBalancers")
    assert answer["LoadBalancerDescriptions"] == []


async def use_volume(client: Client, shoot: ShootOnAws, nodes: dict[str, JsonObject]) -> None:
    """Create a pod with a claim, wait until its volume is attached, and delete both."""
    zone = ZONES[1]
    instances = await shoot.instances()
    [instance] = (
        each["InstanceId"]
        for each in instances.values()
        if each["Placement"]["AvailabilityZone"] == zone
    )
    [node] = (name for name, each in nodes.items() if instance_of(each) == instance)
    claim = await client.create(claim_of("data"))
    user = await client.create(pod_with("database", name_of(claim), zone))
    bound = await until(client, PVC, Key.of(claim), is_bound, patience=PATIENCE)
    shipped = await client.get(PERSISTENT_VOLUME, Key("", bound["spec"]["volumeName"]))
    volume = await volume_of(shoot.account, shipped)
    assert volume["AvailabilityZone"] == zone
    assert tags_of(volume)[f"kubernetes.io/cluster/{await shoot.namespace()}"] == "owned"
    key = attachment_key(volume, node)
    await until(client, ATTACHMENT, key, is_attached, patience=PATIENCE)
    [attachment] = (await volume_of(shoot.account, shipped))["Attachments"]
    assert attachment["InstanceId"] == instance
    await client.delete(POD, Key.of(user))
    await client.delete(PVC, Key.of(claim))
    await until_gone(client, PERSISTENT_VOLUME, Key.of(shipped), patience=PATIENCE)
