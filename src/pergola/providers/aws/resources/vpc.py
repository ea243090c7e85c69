"""The managed VPC (spec 30 §3.3, §9.1); `byo.vpc` checks an existing one."""

from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources import tags
from pergola.providers.aws.resources.adoption import (
    described,
    known,
    refresh,
    remember,
    tag_changes,
)
from pergola.providers.aws.resources.decision import Call, Decision
from pergola.providers.aws.resources.kinds import VPC
from pergola.providers.aws.resources.ours import Ours, anything
from pergola.providers.aws.resources.removal import deletion_step_of
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.waiting import once_visible, wait_until

DNS_ATTRIBUTES: Final = {
    "enableDnsSupport": "EnableDnsSupport",
    "enableDnsHostnames": "EnableDnsHostnames",
}
"""DNS attributes that must be on, as they are requested, and as they are answered and written."""
_AT_FIRST: Final = {"enableDnsSupport": True, "enableDnsHostnames": False}
_AVAILABLE: Final = "available"
_IPV6_BITS: Final = 56
DELETE: Final = "delete VPC"
_OURS: Final = Ours(kind=VPC, key=keys.VPC, accept=anything)


def steps(desired: Desired) -> list[Step]:
    """Return the step that creates the VPC, and keeps it; `byo.vpc` has that of an existing one."""
    if desired.config.byo_vpc:
        return []
    return [Step(name=names.VPC, observe=_observe, decide=_decide, after=(names.DHCP_OPTIONS,))]


async def _observe(work: Work) -> None:
    await refresh(work, _OURS)
    name = known(work, _OURS)
    if name is None:
        return
    if (work.snapshot.vpc or {}).get("State") != _AVAILABLE:
        await wait_until(work, lambda: _available(work, name))
    for attribute in DNS_ATTRIBUTES:
        if attribute not in work.snapshot.vpc_attributes:
            await _is_on(work, name, attribute)


def _decide(work: Work) -> Decision:
    name, options = known(work, _OURS), work.state.get(keys.DHCP_OPTIONS)
    if name is None:
        new = work.desired.config.networks.vpc.cidr or ""
        return Decision.creation(new, partial(_create, work), record={_OURS.key: ""})
    changes: dict[str, Call] = {
        attribute: partial(_switch_on, work, name, attribute)
        for attribute in DNS_ATTRIBUTES
        if not work.snapshot.vpc_attributes.get(attribute)
    }
    if (work.snapshot.vpc or {}).get("DhcpOptionsId") != options:
        changes["its DHCP options"] = partial(_associate_dhcp_options, work, name, options)
    changes |= tag_changes(work, _OURS, name)
    return Decision.change_or_keep(name, changes, {_OURS.key: name})


async def _create(work: Work) -> None:
    answer = await work.aws.call(
        "ec2",
        "CreateVpc",
        CidrBlock=work.desired.config.networks.vpc.cidr,
        InstanceTenancy=_tenancy(work.desired),
        TagSpecifications=tags.specification(VPC.type, _OURS.tags(work)),
        **ipv6_options(work.desired),
    )
    work.snapshot.vpc_attributes = dict(_AT_FIRST)
    remember(work, _OURS, answer)


def _tenancy(desired: Desired) -> str:
    return "dedicated" if desired.config.enable_dedicated_tenancy_for_vpc else "default"


def ipv6_options(desired: Desired) -> JsonObject:
    """Return the source of the VPC's IPv6 block as AWS takes it; nothing without IPv6."""
    if not desired.needs_ipv6_block:
        return {}
    pool = desired.config.networks.vpc.ipv6_ipam_pool
    if pool is None or not pool.id:
        return {"AmazonProvidedIpv6CidrBlock": True}
    if pool.cidr_block:
        return {"Ipv6IpamPoolId": pool.id, "Ipv6CidrBlock": pool.cidr_block}
    return {"Ipv6IpamPoolId": pool.id, "Ipv6NetmaskLength": _IPV6_BITS}


async def _available(work: Work, name: str) -> JsonObject | None:
    vpc = await described(work, VPC, name)
    return vpc if vpc and vpc.get("State") == _AVAILABLE else None


async def _switch_on(work: Work, vpc: str, name: str) -> None:
    value = {DNS_ATTRIBUTES[name]: {"Value": True}}
    await once_visible(work, "ModifyVpcAttribute", VpcId=vpc, **value)
    await wait_until(work, lambda: _is_on(work, vpc, name))


async def _is_on(work: Work, vpc: str, name: str) -> bool | None:
    answer = await once_visible(work, "DescribeVpcAttribute", VpcId=vpc, Attribute=name)
    work.snapshot.vpc_attributes[name] = answer[DNS_ATTRIBUTES[name]]["Value"]
    return work.snapshot.vpc_attributes[name] or None


async def _associate_dhcp_options(work: Work, vpc: str, options: str | None) -> None:
    await once_visible(work, "AssociateDhcpOptions", DhcpOptionsId=options, VpcId=vpc)
    VPC.in_snapshot(work.snapshot)[vpc]["DhcpOptionsId"] = options


def delete_step(after: tuple[str, ...], skip: str | None) -> Step:
    """Return the step that deletes the VPC."""
    also = (keys.VPC_IPV6_BLOCK, keys.SERVICE_CIDR, keys.EGRESS_CIDRS)
    return deletion_step_of(DELETE, _OURS, also=also, after=after, skip=skip)
