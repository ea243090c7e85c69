"""Names of the steps that create a network, for steps that depend on them (§3.3, §3.5)."""

from typing import Final

DHCP_OPTIONS: Final = "ensure DHCP options"
VPC: Final = "ensure VPC"
IPV6_BLOCK: Final = "ensure IPv6 block"
DEFAULT_SECURITY_GROUP: Final = "ensure default security group"
INTERNET_GATEWAY: Final = "ensure internet gateway"
EGRESS_ONLY_GATEWAY: Final = "ensure egress-only internet gateway"
GATEWAY_ENDPOINTS: Final = "ensure gateway endpoints"
MAIN_ROUTE_TABLE: Final = "ensure main route table"
REMOVED_ZONES: Final = "remove what no zone wants"
NAT_GATEWAYS: Final = "wait for NAT gateways"
SERVICE_RANGE: Final = "ensure service range"
EGRESS_RANGES: Final = "ensure egress ranges"


def subnets(zone: str) -> str:
    """After it a zone's subnets exist and their ids are in the state."""
    return f"ensure subnets in {zone}"


def outdated_nat(zone: str) -> str:
    """After it no NAT gateway with another address is left."""
    return f"replace NAT gateway in {zone}"


def address(zone: str) -> str:
    """After it the NAT gateway's elastic IP exists."""
    return f"ensure elastic IP in {zone}"


def nat(zone: str) -> str:
    """After it the NAT gateway exists, though not yet available."""
    return f"ensure NAT gateway in {zone}"


def route_table(zone: str) -> str:
    """After it the private route table exists."""
    return f"ensure route table in {zone}"


def routes(zone: str) -> str:
    """After it the private route table leads to the NAT gateway."""
    return f"ensure routes in {zone}"


def associations(zone: str) -> str:
    """After it the subnets use their route tables."""
    return f"ensure associations in {zone}"


ENDPOINT_ASSOCIATIONS: Final = "ensure associations of gateway endpoints"
