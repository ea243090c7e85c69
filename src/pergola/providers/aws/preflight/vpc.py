"""Checks of a user-provided VPC: DNS, IPv6, gateways, DHCP options (spec 30 §5 L1 to L4, §3.4)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import invalid
from pergola.api.objects import JsonObject
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.preflight.finding import VPC_ID, Finding, ec2, hint, not_found
from pergola.providers.aws.resources.dhcp_options import are_hidden
from pergola.providers.aws.snapshot import Snapshot

_DNS: Final = {
    "enableDnsSupport": "--enable-dns-support",
    "enableDnsHostnames": "--enable-dns-hostnames",
}
_DHCP_SERVERS: Final = "AmazonProvidedDNS"


def check(desired: Desired, snapshot: Snapshot) -> Iterator[Finding]:
    """Yield findings about a user-provided VPC; a managed one is corrected by its step."""
    name = desired.config.networks.vpc.id
    if not name:
        return
    if snapshot.vpc is None:
        cause = not_found(VPC_ID, name, f"VPC {name} has not been found in {desired.region}")
        listed = "describe-vpcs --query 'Vpcs[].[VpcId,CidrBlock]' --output text"
        yield Finding(cause, ec2(desired, listed))
        return
    yield from _dns(desired, snapshot, name)
    if desired.needs_ipv6_block and not ipv6_blocks(snapshot.vpc):
        text = "the VPC has no IPv6 block associated, which IPv6 and dual stack need"
        command = f"associate-vpc-cidr-block --vpc-id {name} --amazon-provided-ipv6-cidr-block"
        yield Finding(invalid(VPC_ID, name, text), ec2(desired, command))
    yield from _gateways(desired, snapshot, name)
    yield from _dhcp(desired, snapshot, name)


def ipv6_blocks(vpc: JsonObject) -> list[str]:
    """Return the IPv6 blocks that are associated with a VPC, or with a subnet."""
    return [
        str(each["Ipv6CidrBlock"])
        for each in vpc.get("Ipv6CidrBlockAssociationSet") or ()
        if (each.get("Ipv6CidrBlockState") or {}).get("State") == "associated"
    ]


def _dns(desired: Desired, snapshot: Snapshot, name: str) -> Iterator[Finding]:
    for attribute, flag in _DNS.items():
        if not snapshot.vpc_attributes.get(attribute):
            text = f"invalid VPC attributes: {attribute} is off, and nodes need it to find names"
            command = f"modify-vpc-attribute --vpc-id {name} {flag}"
            yield Finding(invalid(VPC_ID, name, text), ec2(desired, command))


def _gateways(desired: Desired, snapshot: Snapshot, name: str) -> Iterator[Finding]:
    """Check gateways for managed subnets only: routing of user-provided ones is up to the user."""
    if desired.config.has_public_zone and not _attached(snapshot.internet_gateways, name):
        text = "no attached internet gateway found, which zones with a public range need"
        created = "aws ec2 create-internet-gateway --query InternetGateway.InternetGatewayId"
        command = (
            f"attach-internet-gateway --vpc-id {name} "
            f"--internet-gateway-id $({created} --output text --region {desired.region})"
        )
        yield Finding(invalid(VPC_ID, name, text), ec2(desired, command))
    managed_ipv6 = desired.ipv6 and not desired.config.byo_subnets
    if managed_ipv6 and not _attached(snapshot.egress_only_gateways, name):
        text = "no egress-only internet gateway found, which nodes with IPv6 need"
        command = f"create-egress-only-internet-gateway --vpc-id {name}"
        yield Finding(invalid(VPC_ID, name, text), ec2(desired, command))


def _attached(gateways: dict[str, JsonObject], vpc: str) -> bool:
    return any(
        attachment.get("VpcId") == vpc
        for gateway in gateways.values()
        for attachment in gateway.get("Attachments") or ()
    )


def _dhcp(desired: Desired, snapshot: Snapshot, name: str) -> Iterator[Finding]:
    if are_hidden(snapshot.vpc or {}, snapshot.dhcp_options):
        options_id = (snapshot.vpc or {})["DhcpOptionsId"]
        text = (
            f"its DHCP options {options_id} cannot be read, perhaps because another account shares "
            f'the VPC: make sure that their domain-name is "{desired.dhcp_domain}"'
        )
        yield hint(
            VPC_ID, text, ec2(desired, f"describe-dhcp-options --dhcp-options-ids {options_id}")
        )
        return
    options = snapshot.dhcp_options.get(str((snapshot.vpc or {}).get("DhcpOptionsId")), {})
    domains = _values(options, "domain-name")
    if desired.dhcp_domain in domains:
        return
    said = f'"{" ".join(domains)}"' if domains else "no"
    text = f'its DHCP options have {said} domain-name, and nodes need "{desired.dhcp_domain}"'
    created = (
        "aws ec2 create-dhcp-options --dhcp-configurations "
        f"Key=domain-name,Values={desired.dhcp_domain} "
        f"Key=domain-name-servers,Values={_DHCP_SERVERS} "
        f"--query DhcpOptions.DhcpOptionsId --output text --region {desired.region}"
    )
    command = f"associate-dhcp-options --vpc-id {name} --dhcp-options-id $({created})"
    yield Finding(invalid(VPC_ID, name, text), ec2(desired, command))


def _values(options: JsonObject, key: str) -> list[str]:
    return [
        str(value.get("Value"))
        for each in options.get("DhcpConfigurations") or ()
        if each.get("Key") == key
        for value in each.get("Values") or ()
    ]
