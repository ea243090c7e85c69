"""The instance of a bastion (spec 30 §10.1)."""

from collections.abc import Iterable
from typing import Final

from pergola.api.objects import JsonObject, maps_at
from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import CloudError
from pergola.providers.aws.bastion.machine import Machine
from pergola.providers.aws.bastion.site import Site
from pergola.providers.aws.resources.tags import specification

_ALIVE: Final = ("pending", "running", "stopping", "stopped")
_NOT_GONE: Final = (*_ALIVE, "shutting-down")
_TERMINATED: Final = "IdempotentInstanceTerminated"
_LIVES: Final = 10
"""The number of times that a Bastion's instance is replaced after others terminated it."""


async def ensure_instance(aws: AwsClient, site: Site, machine: Machine, group: str) -> JsonObject:
    """Return the bastion's instance, starting it if there is none."""
    found = await instances_of(aws, site, _ALIVE)
    return found[0] if found else await _start(aws, site, machine, group)


async def instances_of(
    aws: AwsClient, site: Site, states: Iterable[str] = _NOT_GONE
) -> list[JsonObject]:
    """Return the instances with the bastion's name and security group that are not terminated."""
    by = [
        {"Name": "tag:Name", "Values": [site.instance_name]},
        {"Name": "instance-state-name", "Values": list(states)},
    ]
    by += [{"Name": "vpc-id", "Values": [site.vpc]}] if site.vpc else []
    reservations = await aws.pages("ec2", "DescribeInstances", "Reservations", Filters=by)
    there = [instance for each in reservations for instance in each.get("Instances") or ()]
    return [instance for instance in there if _is_ours(site, instance)]


def _is_ours(site: Site, instance: JsonObject) -> bool:
    """Return whether the instance is behind the bastion's group, which one that ends may leave."""
    if (instance.get("State") or {}).get("Name") not in _ALIVE:
        return True
    interfaces = maps_at(instance, "NetworkInterfaces")
    groups = [group for each in interfaces for group in maps_at(each, "Groups")]
    return any(group.get("GroupName") == site.group_name for group in groups)


async def terminate(aws: AwsClient, instances: Iterable[JsonObject]) -> None:
    """Request the termination of instances."""
    names = [
        str(instance["InstanceId"])
        for instance in instances
        if (instance.get("State") or {}).get("Name") in _ALIVE
    ]
    if names:
        await aws.call("ec2", "TerminateInstances", InstanceIds=names)


def endpoint_of(instance: JsonObject) -> JsonObject | None:
    """Return the bastion's addresses; None until it has public and private ones."""
    address, name = instance.get("PublicIpAddress"), instance.get("PublicDnsName")
    if not address or not instance.get("PrivateIpAddress"):
        return None
    return {"ip": address, **({"hostname": name} if name else {})}


async def _start(aws: AwsClient, site: Site, machine: Machine, group: str) -> JsonObject:
    for life in range(_LIVES):
        try:
            answer = await _run(aws, site, machine, group, f"{site.uid}-{life}")
        except CloudError as error:
            if error.code != _TERMINATED or life == _LIVES - 1:
                raise
        else:
            instance: JsonObject = answer["Instances"][0]
            return instance
    raise AssertionError("the last attempt raises or returns")


async def _run(aws: AwsClient, site: Site, machine: Machine, group: str, token: str) -> JsonObject:
    interface: JsonObject = {
        "DeviceIndex": 0,
        "AssociatePublicIpAddress": True,
        "SubnetId": site.subnet,
        "Groups": [group],
    }
    if site.ipv6:
        interface["Ipv6AddressCount"] = 1
    tags = site.tags(site.instance_name)
    return await aws.call(
        "ec2",
        "RunInstances",
        ImageId=machine.image,
        InstanceType=machine.type,
        MinCount=1,
        MaxCount=1,
        ClientToken=token,
        UserData=site.user_data.decode(errors="replace"),
        NetworkInterfaces=[interface],
        TagSpecifications=[
            *specification("instance", tags),
            *specification("volume", tags),
        ],
    )
