"""The managed VPC (spec 30 §3.3, §9.1); `byo.vpc` checks an existing one."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources import tags
from pergola.providers.aws.resources.adoption import described, find, known, remember
from pergola.providers.aws.resources.kinds import VPC
from pergola.providers.aws.resources.ours import Ours, anything
from pergola.providers.aws.resources.removal import delete_ours
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
    return [Step(name=names.VPC, plan=_plan, ensure=_ensure, after=(names.DHCP_OPTIONS,))]


def _plan(work: Work) -> Note:
    vpc = VPC.one(work.snapshot, known(work, _OURS))
    if vpc is None:
        return Note(Fate.CREATE, work.desired.config.networks.vpc.cidr or "")
    changes = [name for name in DNS_ATTRIBUTES if not work.snapshot.vpc_attributes.get(name)]
    if vpc.get("DhcpOptionsId") != work.state.get(keys.DHCP_OPTIONS):
        changes.append("its DHCP options")
    if any(tags.differing(work, vpc, _OURS.tags(work))):
        changes.append("its tags")
    if changes:
        return Note(Fate.CHANGE, f"{vpc['VpcId']}: {', '.join(changes)}")
    return Note(Fate.KEEP, vpc["VpcId"])


async def _ensure(work: Work) -> None:
    vpc = await find(work, _OURS) or await _create(work)
    if vpc.get("State") != _AVAILABLE:
        vpc = await wait_until(work, lambda: _available(work, vpc["VpcId"]))
    for name in DNS_ATTRIBUTES:
        await _switch_on(work, vpc["VpcId"], name)
    await _associate_dhcp_options(work, vpc)


async def _create(work: Work) -> JsonObject:
    answer = await work.aws.call(
        "ec2",
        "CreateVpc",
        CidrBlock=work.desired.config.networks.vpc.cidr,
        InstanceTenancy=_tenancy(work.desired),
        TagSpecifications=tags.specification(VPC.type, _OURS.tags(work)),
        **ipv6_options(work.desired),
    )
    work.snapshot.vpc_attributes = dict(_AT_FIRST)
    return remember(work, _OURS, answer)


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
    attributes = work.snapshot.vpc_attributes
    if name not in attributes:
        await _is_on(work, vpc, name)
    if attributes.get(name):
        return
    value = {DNS_ATTRIBUTES[name]: {"Value": True}}
    await once_visible(work, "ModifyVpcAttribute", VpcId=vpc, **value)
    await wait_until(work, lambda: _is_on(work, vpc, name))


async def _is_on(work: Work, vpc: str, name: str) -> bool | None:
    answer = await once_visible(work, "DescribeVpcAttribute", VpcId=vpc, Attribute=name)
    work.snapshot.vpc_attributes[name] = answer[DNS_ATTRIBUTES[name]]["Value"]
    return work.snapshot.vpc_attributes[name] or None


async def _associate_dhcp_options(work: Work, vpc: JsonObject) -> None:
    options = work.state.get(keys.DHCP_OPTIONS)
    if options is None or vpc.get("DhcpOptionsId") == options:
        return
    await once_visible(work, "AssociateDhcpOptions", DhcpOptionsId=options, VpcId=vpc["VpcId"])
    vpc["DhcpOptionsId"] = options


def delete_step(after: tuple[str, ...], skip: str | None) -> Step:
    """Return the step that deletes the VPC."""
    also = (keys.VPC_IPV6_BLOCK, keys.SERVICE_CIDR, keys.EGRESS_CIDRS)
    return delete_ours(DELETE, _OURS, also=also, after=after, skip=skip)
