"""Observing the VPC: that of the config or the state, else the one with the cluster's tags."""

from contextlib import suppress
from typing import Final

from pergola.cloud.aws.network import filters_by, tags_of
from pergola.cloud.errors import NotFound
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws.resources.kinds import DHCP_OPTIONS
from pergola.providers.aws.resources.observation import Observation, describe

DNS: Final = ("enableDnsSupport", "enableDnsHostnames")


async def observe_vpc(seen: Observation) -> None:
    """Read the VPC, whose id is known; for a user's VPC, its DHCP options as well.

    Raises:
        CloudError: AWS refused.
    """
    by = filters_by({"vpc-id": seen.vpc})
    vpcs = await seen.aws.pages("ec2", "DescribeVpcs", "Vpcs", Filters=by)
    seen.snapshot.vpc = vpc = vpcs[0] if vpcs else None
    if vpc is not None and seen.desired.config.byo_vpc:
        options = filters_by({"dhcp-options-id": str(vpc.get("DhcpOptionsId"))})
        with suppress(NotFound):  # another account shares the VPC, but not its options
            await describe(seen, DHCP_OPTIONS, options)


async def find_vpc(seen: Observation) -> None:
    """Find the VPC that was created for this cluster, if the state has lost it.

    Raises:
        CloudError: AWS refused.
        ExtensionError: several VPCs have the tags of this cluster.
    """
    tags = seen.desired.tags()
    del tags[seen.desired.cluster_tag]
    by = filters_by({f"tag:{key}": value for key, value in tags.items()})
    found = await seen.aws.pages("ec2", "DescribeVpcs", "Vpcs", Filters=by)
    vpcs = [vpc for vpc in found if seen.desired.owns(tags_of(vpc))]
    if len(vpcs) > 1:
        ids = ", ".join(sorted(vpc["VpcId"] for vpc in vpcs))
        raise ExtensionError(
            f'multiple matches: {ids} all have the tags of "{seen.desired.name()}"; delete '
            "those that the cluster does not use",
            Code.CONFIGURATION_PROBLEM,
        )
    if vpcs:
        seen.snapshot.vpc, seen.vpc = vpcs[0], vpcs[0]["VpcId"]


async def observe_dns(seen: Observation, attribute: str) -> None:
    """Read one of the DNS attributes of the VPC.

    Raises:
        CloudError: AWS refused.
    """
    try:
        answer = await seen.aws.call(
            "ec2", "DescribeVpcAttribute", VpcId=seen.vpc, Attribute=attribute
        )
    except NotFound:
        return
    field = attribute[0].upper() + attribute[1:]
    seen.snapshot.vpc_attributes[attribute] = bool((answer.get(field) or {}).get("Value"))
