"""Checks of an existing VPC, in which nothing is changed (spec 30 §3.4)."""

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import Code, ExtensionError
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.dhcp_options import are_hidden, options_of, wanted_options
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.vpc import DNS_ATTRIBUTES
from pergola.providers.aws.wanted import Wanted


def steps(wanted: Wanted) -> list[Step]:
    """Return the step that checks an existing VPC; none if the VPC is managed."""
    if not wanted.config.byo_vpc:
        return []
    return [Step(name=names.VPC, plan=_plan, ensure=_ensure)]


def faults(work: Work) -> list[str]:
    """Return why the cluster cannot use the existing VPC; nothing if it can."""
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
    if are_hidden(vpc, work.snapshot.dhcp_options):
        return []
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


def _plan(work: Work) -> Note:
    found = faults(work)
    name = work.wanted.config.networks.vpc.id
    return Note(Fate.KEEP, "; ".join(found) if found else f"{name}, which already exists")


async def _ensure(work: Work) -> None:
    found = faults(work)
    if found:
        raise ExtensionError("; ".join(found), Code.CONFIGURATION_PROBLEM)
    work.state.set(keys.VPC, work.wanted.config.networks.vpc.id or "")
