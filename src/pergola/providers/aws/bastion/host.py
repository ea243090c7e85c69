"""The instance of a bastion (spec 30 §10.1)."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import CloudError
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws.bastion.machine import Machine
from pergola.providers.aws.bastion.site import Site
from pergola.providers.aws.resources.tags import specification

_ALIVE: Final = ("pending", "running", "stopping", "stopped")
_NOT_GONE: Final = (*_ALIVE, "shutting-down")
_GONE: Final = "terminated"
_USED_TOKEN: Final = ("IdempotentInstanceTerminated", "IdempotentParameterMismatch")
"""The token belongs to an instance that is gone, or that had another image."""
_BY_USERS: Final = ("Client.UserInitiatedShutdown", "Client.InstanceInitiatedShutdown")
_PAUSE: Final = timedelta(minutes=10)
"""The time after the start of an instance that ended by itself, before another one is started."""
_LIVES: Final = 10
"""The number of times that a Bastion's instance is replaced after others terminated it."""


async def ensure_instance(
    aws: AwsClient, site: Site, machine: Machine, group: str, now: datetime
) -> JsonObject:
    """Return the bastion's instance, starting it if there is none.

    Raises:
        ExtensionError: the last one ended by itself a short time ago; the text says why.
    """
    found = await _named(aws, site, (*_NOT_GONE, _GONE))
    for instance in found:
        if _state(instance) in _ALIVE:
            return instance
    _check_ended(found, now)
    return await _start(aws, site, machine, group)


async def instances_of(aws: AwsClient, site: Site) -> list[JsonObject]:
    """Return the instances with the bastion's name and security group that are not terminated."""
    return await _named(aws, site, _NOT_GONE)


async def _named(aws: AwsClient, site: Site, states: Iterable[str]) -> list[JsonObject]:
    by = [
        {"Name": "tag:Name", "Values": [site.instance_name]},
        {"Name": "instance-state-name", "Values": list(states)},
    ]
    reservations = await aws.pages("ec2", "DescribeInstances", "Reservations", Filters=by)
    there = [instance for each in reservations for instance in each.get("Instances") or ()]
    return [instance for instance in there if _is_ours(site, instance)]


def _is_ours(site: Site, instance: JsonObject) -> bool:
    """Return whether an instance with the bastion's name is behind the bastion's group.

    One that ends loses its group and its VPC.
    """
    if _state(instance) not in _ALIVE:
        return True
    interfaces = maps_at(instance, "NetworkInterfaces")
    groups = [group for each in interfaces for group in maps_at(each, "Groups")]
    is_inside = not site.vpc or instance.get("VpcId") == site.vpc
    return is_inside and any(group.get("GroupName") == site.group_name for group in groups)


def _check_ended(instances: Iterable[JsonObject], now: datetime) -> None:
    """Check that the last instance was not ended by AWS: another one would suffer the same fate."""
    ended = [each for each in instances if _state(each) == _GONE and "LaunchTime" in each]
    last = max(ended, key=lambda each: each["LaunchTime"], default={})
    reason = map_at(last, "StateReason")
    code = str(reason.get("Code") or "")
    if not code or code in _BY_USERS or now - last["LaunchTime"] > _PAUSE:
        return
    raise ExtensionError(
        f"instance {last['InstanceId']} of the bastion ended by itself: {reason.get('Message')}; "
        f"another one is started {_PAUSE.seconds // 60} minutes after it, or delete the Bastion",
        Code.DEPENDENCIES if code.startswith("Server.") else Code.CONFIGURATION_PROBLEM,
    )


def _state(instance: JsonObject) -> str:
    return str(map_at(instance, "State").get("Name") or "")


async def terminate(aws: AwsClient, instances: Iterable[JsonObject]) -> None:
    """Request the termination of instances."""
    names = [str(instance["InstanceId"]) for instance in instances if _state(instance) in _ALIVE]
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
            if error.code not in _USED_TOKEN or life == _LIVES - 1:
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
        UserData=site.user_data,  # as bytes: it may be compressed
        # Tags in the metadata cannot have keys with slashes, such as that of the cluster's tag.
        MetadataOptions={"HttpTokens": "required", "InstanceMetadataTags": "disabled"},
        NetworkInterfaces=[interface],
        TagSpecifications=[
            *specification("instance", tags),
            *specification("volume", tags),
        ],
    )
