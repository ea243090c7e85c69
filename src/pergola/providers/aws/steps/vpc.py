"""The VPC: created as nodes need it, or an existing one that is only looked at (spec 30 §3.4)."""

import asyncio
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.errors import NotFound
from pergola.extension_api.errors import Code, ExtensionError
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws import tags
from pergola.providers.aws.snapshot import tags_of
from pergola.providers.aws.step import Step, Work
from pergola.providers.aws.steps import names
from pergola.providers.aws.steps.dhcp_options import options_of, wanted_options
from pergola.providers.aws.steps.waiting import LOOKS, once_visible, wait_until
from pergola.providers.aws.wanted import Wanted

DNS_ATTRIBUTES: Final = {
    "enableDnsSupport": "EnableDnsSupport",
    "enableDnsHostnames": "EnableDnsHostnames",
}
"""What a VPC has to have switched on, as it is asked for and as it is answered and written."""
_AT_FIRST: Final = {"enableDnsSupport": True, "enableDnsHostnames": False}
_AVAILABLE: Final = "available"
_IPV6_BITS: Final = 56


def steps(wanted: Wanted) -> list[Step]:
    """The step that creates the VPC, or checks the one that exists and changes nothing of it."""
    if wanted.config.brings_vpc:
        return [Step(name=names.VPC, plan=_plan_existing, ensure=_ensure_existing)]
    return [Step(name=names.VPC, plan=_plan, ensure=_ensure, after=(names.DHCP_OPTIONS,))]


def faults_of_existing(work: Work) -> list[str]:
    """Why clusters cannot live in a VPC that exists; nothing if they can."""
    vpc = work.snapshot.vpc
    wanted = work.wanted.config.networks.vpc.id
    if vpc is None or vpc["VpcId"] != wanted:
        return [f"VPC {wanted} has not been found in {work.wanted.region}"]
    return [*_dns_faults(work, vpc), *_dhcp_faults(work, vpc), *_ipv6_faults(work, vpc)]


def _dns_faults(work: Work, vpc: JsonObject) -> list[str]:
    return [
        f"invalid VPC attributes of {vpc['VpcId']}: {name} is off, switch it on"
        for name in DNS_ATTRIBUTES
        if not work.snapshot.vpc_attributes.get(name)
    ]


def _dhcp_faults(work: Work, vpc: JsonObject) -> list[str]:
    name = vpc.get("DhcpOptionsId", "")
    options = options_of(work.snapshot.dhcp_options.get(name, {}))
    return [
        f'DHCP options {name} of VPC {vpc["VpcId"]}: {key} is "{options.get(key, "")}"; '
        f'associate options in which it is "{value}"'
        for key, value in wanted_options(work.wanted).items()
        if options.get(key) != value
    ]


def _ipv6_faults(work: Work, vpc: JsonObject) -> list[str]:
    if not work.wanted.needs_ipv6_block or vpc.get("Ipv6CidrBlockAssociationSet"):
        return []
    return [f"VPC {vpc['VpcId']} has no IPv6 block, which the cluster needs; associate one"]


def _plan_existing(work: Work) -> Note:
    faults = faults_of_existing(work)
    name = work.wanted.config.networks.vpc.id
    return Note(Fate.KEEP, "; ".join(faults) if faults else f"{name}, which exists already")


async def _ensure_existing(work: Work) -> None:
    faults = faults_of_existing(work)
    if faults:
        raise ExtensionError("; ".join(faults), Code.CONFIGURATION_PROBLEM)
    work.state.set(keys.VPC, work.wanted.config.networks.vpc.id or "")


def _plan(work: Work) -> Note:
    vpc = _known(work)
    if vpc is None:
        return Note(Fate.CREATE, work.wanted.config.networks.vpc.cidr or "")
    changes = [name for name in DNS_ATTRIBUTES if not work.snapshot.vpc_attributes.get(name)]
    if vpc.get("DhcpOptionsId") != work.state.get(keys.DHCP_OPTIONS):
        changes.append("its DHCP options")
    if any(tags.differing(work, vpc, work.wanted.tags())):
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
    """The VPC of the state, or one with the cluster's tags."""
    vpc = work.snapshot.vpc
    if vpc is None or vpc["VpcId"] == work.state.get(keys.VPC):
        return vpc
    ours = tags_of(vpc)
    is_ours = work.wanted.owns(ours) and ours.get("Name") == work.wanted.name()
    return vpc if is_ours else None


async def _find(work: Work) -> JsonObject | None:
    await _refresh(work)
    vpc = _known(work)
    if vpc is None:
        work.state.forget(keys.VPC)
        return None
    work.state.set(keys.VPC, vpc["VpcId"])
    await tags.retag(work, vpc["VpcId"], vpc, work.wanted.tags())
    return vpc


async def _refresh(work: Work) -> None:
    """Looks for a VPC that the state knows and the snapshot does not."""
    name = work.state.get(keys.VPC)
    if name is None or (work.snapshot.vpc or {}).get("VpcId") == name:
        return
    for look in range(LOOKS):
        if look:
            await asyncio.sleep(work.poll_seconds)
        if await described(work, name):
            return


async def _create(work: Work) -> JsonObject:
    answer = await work.aws.call(
        "ec2",
        "CreateVpc",
        CidrBlock=work.wanted.config.networks.vpc.cidr,
        InstanceTenancy=_tenancy(work.wanted),
        TagSpecifications=tags.specification("vpc", work.wanted.tags()),
        **ipv6_options(work.wanted),
    )
    vpc: JsonObject = answer["Vpc"]
    work.state.created(keys.VPC, vpc["VpcId"])
    work.snapshot.vpc = vpc
    work.snapshot.vpc_attributes = dict(_AT_FIRST)
    return vpc


def _tenancy(wanted: Wanted) -> str:
    return "dedicated" if wanted.config.enable_dedicated_tenancy_for_vpc else "default"


def ipv6_options(wanted: Wanted) -> JsonObject:
    """Where the VPC's IPv6 block comes from, as AWS takes it; nothing if there is to be none."""
    if not wanted.needs_ipv6_block:
        return {}
    pool = wanted.config.networks.vpc.ipv6_ipam_pool
    if pool is None or not pool.id:
        return {"AmazonProvidedIpv6CidrBlock": True}
    if pool.cidr_block:
        return {"Ipv6IpamPoolId": pool.id, "Ipv6CidrBlock": pool.cidr_block}
    return {"Ipv6IpamPoolId": pool.id, "Ipv6NetmaskLength": _IPV6_BITS}


async def described(work: Work, name: str) -> JsonObject | None:
    """What AWS says of the VPC now; None if it does not see it. The snapshot learns it.

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
