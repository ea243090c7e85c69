"""A Shoot on AWS with machines in three zones, in a landscape."""

import base64
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Final

from pergola.api.kinds import MACHINE, MACHINE_CLASS, NODE, POD, SECRET, SHOOT
from pergola.api.objects import (
    JsonObject,
    Key,
    generation_of,
    map_at,
    maps_at,
    name_of,
)
from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import tags_of
from pergola.health.conditions import has_status
from pergola.sandbox.landscape import create_shoot
from pergola.sandbox.landscape.aws import REGION
from pergola.testing.waiting import until
from tests.support.landscape import PATIENCE, SeedCluster, World
from tests.support.landscape_aws import move

ZONES: Final = tuple(f"{REGION}{letter}" for letter in "abc")
_KEYS: Final = ("accessKeyID", "secretAccessKey")
_EXAMPLE: Final = "shoot-on-aws.yaml"
_RUNNING: Final = {"Name": "instance-state-name", "Values": ["pending", "running"]}
_POOL: Final[JsonObject] = {
    "minimum": 3,
    "maximum": 3,
    "maxSurge": 1,
    "maxUnavailable": 0,
    "zones": [*ZONES],
    "cri": {"name": "containerd"},
    "machine": {
        "type": "m5.large",
        "architecture": "amd64",
        "image": {"name": "local", "version": "1.0.0"},
    },
    "volume": {"type": "gp3", "size": "50Gi"},
}


@dataclass
class ShootOnAws:
    """A Shoot with machines in an account.

    Attributes:
        account: in which its machines are started.
        seed: with its control plane.
        key: of the Shoot.
    """

    landscape: World
    account: AwsClient
    seed: SeedCluster
    key: Key

    async def change(self, spec: JsonObject) -> None:
        """Merge a patch into the Shoot's spec, and wait until it is healthy."""
        await self.landscape.garden.patch(SHOOT, self.key, {"spec": spec})
        await self.landscape.healthy(SHOOT, self.key)

    async def change_pools(self, *pools: JsonObject) -> None:
        """Replace the pools, and wait until that is done."""
        await self.change({"provider": {"workers": list(pools)}})

    async def change_pools_in_vain(self, *pools: JsonObject) -> None:
        """Replace the pools, and wait until Gardener reports an error."""
        spec: JsonObject = {"provider": {"workers": list(pools)}}
        generation = generation_of(
            await self.landscape.garden.patch(SHOOT, self.key, {"spec": spec})
        )

        def has_failed(shoot: JsonObject) -> bool:
            status = map_at(shoot, "status")
            observed = status.get("observedGeneration") == generation
            return observed and bool(maps_at(status, "lastErrors"))

        await until(self.landscape.garden, SHOOT, self.key, has_failed, patience=PATIENCE)

    async def errors(self) -> list[JsonObject]:
        """Return the errors of its last operation."""
        shoot = await self.landscape.garden.get(SHOOT, self.key)
        return maps_at(shoot, "status", "lastErrors")

    async def until_healthy(self) -> None:
        """Wait until the last change is done, and all conditions are true."""
        await self.landscape.healthy(SHOOT, self.key)

    async def change_keys(self, keys: Mapping[str, str]) -> None:
        """Replace its keys of the account, and wait until it uses them."""
        patch: JsonObject = {"stringData": dict(keys)}
        await self.landscape.garden.patch(SECRET, Key(self.key.namespace, "aws"), patch)
        await self.landscape.perform(SHOOT, self.key, "reconcile")

    async def keys_of_machines(self) -> dict[str, str]:
        """Return the keys of the account with which all of its machines are made."""
        client, namespace = self.seed.site.client, await self.namespace()
        classes = await client.list(MACHINE_CLASS, namespace)
        [name] = {map_at(each, "credentialsSecretRef")["name"] for each in classes}
        data = map_at(await client.get(SECRET, Key(namespace, name)), "data")
        return {name: base64.b64decode(data[name]).decode() for name in _KEYS}

    async def move(self, target: SeedCluster) -> None:
        """Move its control plane to another Seed, and wait until it is restored there."""
        await move(self.landscape, self.key, target)
        self.seed = target

    async def namespace(self) -> str:
        """Return the namespace of its control plane."""
        shoot = await self.landscape.garden.get(SHOOT, self.key)
        return str(map_at(shoot, "status")["technicalID"])

    async def instances(self) -> dict[str, JsonObject]:
        """Return its running instances by the names of their machines."""
        tag = {"Name": f"tag:kubernetes.io/cluster/{await self.namespace()}", "Values": ["1"]}
        found = await self.account.pages(
            "ec2", "DescribeInstances", "Reservations", Filters=[_RUNNING, tag]
        )
        instances = [each for reservation in found for each in reservation["Instances"]]
        return {tags_of(each)["Name"]: each for each in instances}

    async def machines(self) -> dict[str, JsonObject]:
        """Return its machines by name."""
        found = await self.seed.site.client.list(MACHINE, await self.namespace())
        return {name_of(each): each for each in found}

    async def until_nodes_run(self, count: int) -> dict[str, JsonObject]:
        """Wait until so many nodes are ready, and all pods run; return the nodes by name.

        Each node belongs to a machine with an instance.
        """
        async with self.landscape.client_of(self.key, self.seed) as client:
            nodes = await client.list(NODE)
            assert len(nodes) == count
            ready = [await until(client, NODE, Key.of(each), is_ready) for each in nodes]
            for pod in await client.list(POD):
                await until(client, POD, Key.of(pod), is_running, patience=PATIENCE)
        running = {each["InstanceId"] for each in (await self.instances()).values()}
        assert {instance_of(node) for node in ready} == running
        return {name_of(node): node for node in ready}


async def create_shoot_with_machines(
    landscape: World,
    account: AwsClient,
    seed: SeedCluster,
    name: str,
    *pools: JsonObject,
    infrastructure: JsonObject | None = None,
) -> ShootOnAws:
    """Create a Shoot with these pools, and wait until it is healthy.

    Args:
        infrastructure: its InfrastructureConfig; by default, Pergola creates a network in three
            zones.
    """
    spec: JsonObject = {
        "seedName": seed.name,
        "dns": {"domain": f"{name}.example.org"},
        "provider": {
            "infrastructureConfig": infrastructure or _network(),
            "workers": list(pools),
        },
    }
    patch: JsonObject = {"metadata": {"name": name}, "spec": spec}
    key = await create_shoot(landscape.garden, patch, example=_EXAMPLE)
    await landscape.healthy(SHOOT, key)
    return ShootOnAws(landscape, account, seed, key)


def _network() -> JsonObject:
    """Return what the example lacks to have a network in three zones."""
    zones = [
        {
            "name": zone,
            "workers": f"10.250.{number * 64}.0/19",
            "internal": f"10.250.{number * 64 + 32}.0/20",
            "public": f"10.250.{number * 64 + 48}.0/20",
        }
        for number, zone in enumerate(ZONES)
    ]
    return {"networks": {"zones": zones}}


async def parts_of(
    account: AwsClient, instances: Mapping[str, JsonObject]
) -> list[tuple[str, str]]:
    """Return which volumes and network interfaces of former instances still exist, and whose."""
    found = await account.pages("ec2", "DescribeVolumes", "Volumes")
    volumes = [
        (each["VolumeId"], attached["InstanceId"])
        for each in found
        for attached in each["Attachments"]
    ]
    interfaces = [
        (each["NetworkInterfaceId"], each.get("Attachment", {}).get("InstanceId", ""))
        for each in await account.pages("ec2", "DescribeNetworkInterfaces", "NetworkInterfaces")
    ]
    gone = {each["InstanceId"] for each in instances.values()}
    return [part for part in (*volumes, *interfaces) if part[1] in gone]


def pool(name: str, **changes: JsonObject | int | list[str]) -> JsonObject:
    """Return a pool with a machine in each zone, and with changes."""
    return {**deepcopy(_POOL), "name": name, **changes}


def zones_of(instances: Mapping[str, JsonObject]) -> list[str]:
    """Return the zone of each instance, sorted."""
    return sorted(each["Placement"]["AvailabilityZone"] for each in instances.values())


def instance_of(node: JsonObject) -> str:
    """Return the id of a Node's instance."""
    return str(map_at(node, "spec").get("providerID")).rpartition("/")[2]


def is_ready(node: JsonObject) -> bool:
    """Return whether a Node is ready, and its critical pods have removed their taint."""
    return has_status(node, "Ready", "True") and not maps_at(node, "spec", "taints")


def is_running(pod: JsonObject) -> bool:
    """Return whether a Pod was started or has ended."""
    return map_at(pod, "status").get("phase") in ("Running", "Succeeded")
