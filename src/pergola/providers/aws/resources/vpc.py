"""The managed VPC (spec 30 §3.3, §9.1); `byo.vpc` checks an existing one."""

import asyncio
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.cloud.errors import NotFound
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources import tags
from pergola.providers.aws.resources.removal import forget, note, remove, to_delete
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.waiting import POLLS, once_visible, wait_until

DNS_ATTRIBUTES: Final = {
    "enableDnsSupport": "EnableDnsSupport",
    "enableDnsHostnames": "EnableDnsHostnames",
}
"""DNS attributes that must be on, as they are requested, and as they are answered and written."""
_AT_FIRST: Final = {"enableDnsSupport": True, "enableDnsHostnames": False}
_AVAILABLE: Final = "available"
_IPV6_BITS: Final = 56
DELETE: Final = "delete VPC"


def steps(desired: Desired) -> list[Step]:
    """Return the step that creates the VPC, and keeps it; `byo.vpc` has that of an existing one."""
    if desired.config.byo_vpc:
        return []
    return [Step(name=names.VPC, plan=_plan, ensure=_ensure, after=(names.DHCP_OPTIONS,))]


def _plan(work: Work) -> Note:
    vpc = _known(work)
    if vpc is None:
        return Note(Fate.CREATE, work.desired.config.networks.vpc.cidr or "")
    changes = [name for name in DNS_ATTRIBUTES if not work.snapshot.vpc_attributes.get(name)]
    if vpc.get("DhcpOptionsId") != work.state.get(keys.DHCP_OPTIONS):
        changes.append("its DHCP options")
    if any(tags.differing(work, vpc, work.desired.tags())):
        changes.append("its tags")
    if changes:
        return Note(Fate.CHANGE, f"{vpc['VpcId']}: {', '.join(changes)}")
    return Note(Fate.KEEP, vpc["VpcId"])


async def _ensure(work: Work) -> None:
    vpc = await _find(work) or await _create(work)
    if vpc.get("State") != _AVAILABLE:
        vpc = await wait_until(work, lambda: _available(work, vpc["VpcId"]))
    for name in DNS_ATTRIBUTES:
        await _switch_on(work, vpc["VpcId"], name)
    await _associate_dhcp_options(work, vpc)


def _known(work: Work) -> JsonObject | None:
    """Return the VPC of the state, or one with the cluster's tags."""
    vpc = work.snapshot.vpc
    if vpc is None or vpc["VpcId"] == work.state.get(keys.VPC):
        return vpc
    ours = tags_of(vpc)
    is_ours = work.desired.owns(ours) and ours.get("Name") == work.desired.name()
    return vpc if is_ours else None


async def _find(work: Work) -> JsonObject | None:
    await _refresh(work)
    vpc = _known(work)
    if vpc is None:
        work.state.forget(keys.VPC)
        return None
    work.state.set(keys.VPC, vpc["VpcId"])
    await tags.retag(work, vpc["VpcId"], vpc, work.desired.tags())
    return vpc


async def _refresh(work: Work) -> None:
    """Describe a VPC that is in the state but not in the snapshot."""
    name = work.state.get(keys.VPC)
    if name is None or (work.snapshot.vpc or {}).get("VpcId") == name:
        return
    for observe in range(POLLS):
        if observe:
            await asyncio.sleep(work.poll_seconds)
        if await described(work, name):
            return


async def _create(work: Work) -> JsonObject:
    answer = await work.aws.call(
        "ec2",
        "CreateVpc",
        CidrBlock=work.desired.config.networks.vpc.cidr,
        InstanceTenancy=_tenancy(work.desired),
        TagSpecifications=tags.specification("vpc", work.desired.tags()),
        **ipv6_options(work.desired),
    )
    vpc: JsonObject = answer["Vpc"]
    work.state.created(keys.VPC, vpc["VpcId"])
    work.snapshot.vpc = vpc
    work.snapshot.vpc_attributes = dict(_AT_FIRST)
    return vpc


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


async def described(work: Work, name: str) -> JsonObject | None:
    """Describe the VPC now, and update the snapshot; None if AWS does not find it.

    Raises:
        CloudError: AWS refused.
    """
    try:
        answer = await work.aws.call("ec2", "DescribeVpcs", VpcIds=[name])
    except NotFound:
        return None
    found: JsonObject | None = next(iter(answer.get("Vpcs") or []), None)
    if found is not None:
        work.snapshot.vpc = found
    return found


async def _available(work: Work, name: str) -> JsonObject | None:
    vpc = await described(work, name)
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
    return Step(name=DELETE, plan=_plan_deletion, ensure=_delete, after=after, skip=skip)


def _plan_deletion(work: Work) -> Note:
    return note(_to_delete(work))


async def _delete(work: Work) -> None:
    for name in _to_delete(work):
        await remove(work, "DeleteVpc", VpcId=name)
        work.snapshot.vpc = None
    forget(work, keys.VPC, keys.VPC_IPV6_BLOCK, keys.SERVICE_CIDR, keys.EGRESS_CIDRS)


def _to_delete(work: Work) -> list[str]:
    """Return the VPC in the state, or one with this cluster's tags."""
    found = work.snapshot.vpc
    things = {} if found is None else {str(found["VpcId"]): found}
    return to_delete(work, things, (work.state.get(keys.VPC),), (work.desired.name(),))
