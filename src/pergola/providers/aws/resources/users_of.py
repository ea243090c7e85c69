"""The network interfaces because of which AWS does not delete something (spec 30 §9.1)."""

from collections.abc import Mapping
from typing import Final

from pergola.api.objects import JsonObject, map_at
from pergola.cloud.aws.network import filters_by
from pergola.cloud.errors import CloudError
from pergola.providers.aws.resources.step import Work

_FILTERS: Final = {"SubnetId": "subnet-id", "GroupId": "group-id", "VpcId": "vpc-id"}
"""Filters of network interfaces, by the parameter that names what is to be deleted."""
_SHOWN: Final = 3


async def users_of(work: Work, parameters: Mapping[str, object]) -> str:
    """Return the network interfaces in something, with their owners; empty if none is known.

    Args:
        parameters: of the request that deletes it, such as `SubnetId`.
    """
    by = {_FILTERS[name]: str(value) for name, value in parameters.items() if name in _FILTERS}
    if not by:
        return ""
    try:
        found = await work.aws.pages(
            "ec2", "DescribeNetworkInterfaces", "NetworkInterfaces", Filters=filters_by(by)
        )
    except CloudError:  # older policies lack the permission
        return ""
    shown = [_title(each) for each in found[:_SHOWN]]
    if len(found) > _SHOWN:
        shown.append(f"{len(found) - _SHOWN} more")
    return ", ".join(shown)


def _title(interface: JsonObject) -> str:
    """Return an interface with what AWS says of its user, as in `eni-1 (ELB app/web/1)`."""
    instance = map_at(interface, "Attachment").get("InstanceId")
    description = str(interface.get("Description") or "")
    user = f"instance {instance}" if instance else description
    user = user or str(interface.get("RequesterId") or interface.get("InterfaceType") or "")
    name = str(interface["NetworkInterfaceId"])
    return f"{name} ({user})" if user else name
