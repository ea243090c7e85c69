"""Checks of an existing VPC, in which nothing is changed (spec 30 §3.4)."""

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.dhcp_options import are_hidden, desired_options, options_of
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.vpc import DNS_ATTRIBUTES


def steps(desired: Desired) -> list[Step]:
    """Return the step that checks an existing VPC; none if the VPC is managed."""
    if not desired.config.byo_vpc:
        return []
    return [Step(name=names.VPC, decide=_decide)]


def faults(work: Work) -> list[str]:
    """Return why the cluster cannot use the existing VPC; nothing if it can."""
    vpc = work.snapshot.vpc
    vpc_id = work.desired.config.networks.vpc.id
    if vpc is None or vpc["VpcId"] != vpc_id:
        return [f"VPC {vpc_id} has not been found in {work.desired.region}"]
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
        for key, value in desired_options(work.desired).items()
        if options.get(key) != value
    ]


def _ipv6_faults(work: Work, vpc: JsonObject) -> list[str]:
    if not work.desired.needs_ipv6_block or vpc.get("Ipv6CidrBlockAssociationSet"):
        return []
    return [f"VPC {vpc['VpcId']} has no IPv6 block, which the cluster needs; associate one"]


def _decide(work: Work) -> Decision:
    found, name = faults(work), work.desired.config.networks.vpc.id or ""
    if found:
        return Decision.refuse(ExtensionError("; ".join(found), Code.CONFIGURATION_PROBLEM))
    return Decision.keep(f"{name}, which already exists", {keys.VPC: name})
