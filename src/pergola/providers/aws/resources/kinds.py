"""The kinds of EC2 resources that are listed: how they are described and stored."""

from dataclasses import dataclass
from typing import Final

from pergola.api.objects import JsonObject
from pergola.providers.aws.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of resources in EC2.

    Attributes:
        field: of a `Snapshot`.
        describe: the operation that describes them.
        items: their name in the answer.
        id: the name of their id; with an `s`, the name of its parameter.
        type: their type in the tags of a creation request.
        filters: the name of the operation's parameter for filters.
    """

    field: str
    describe: str
    items: str
    id: str
    type: str
    filters: str = "Filters"

    def in_snapshot(self, snapshot: Snapshot) -> dict[str, JsonObject]:
        """Return the described ones, by id."""
        found: dict[str, JsonObject] = getattr(snapshot, self.field)
        return found

    def one(self, snapshot: Snapshot, id_: str | None) -> JsonObject | None:
        """Return the one with an id, if it was described."""
        return self.in_snapshot(snapshot).get(id_) if id_ else None


DHCP_OPTIONS: Final = Kind(
    "dhcp_options", "DescribeDhcpOptions", "DhcpOptions", "DhcpOptionsId", "dhcp-options"
)
INTERNET_GATEWAY: Final = Kind(
    "internet_gateways",
    "DescribeInternetGateways",
    "InternetGateways",
    "InternetGatewayId",
    "internet-gateway",
)
EGRESS_ONLY_GATEWAY: Final = Kind(
    "egress_only_gateways",
    "DescribeEgressOnlyInternetGateways",
    "EgressOnlyInternetGateways",
    "EgressOnlyInternetGatewayId",
    "egress-only-internet-gateway",
)
SUBNET: Final = Kind("subnets", "DescribeSubnets", "Subnets", "SubnetId", "subnet")
ROUTE_TABLE: Final = Kind(
    "route_tables", "DescribeRouteTables", "RouteTables", "RouteTableId", "route-table"
)
NAT_GATEWAY: Final = Kind(
    "nat_gateways",
    "DescribeNatGateways",
    "NatGateways",
    "NatGatewayId",
    "natgateway",
    filters="Filter",
)
ADDRESS: Final = Kind("addresses", "DescribeAddresses", "Addresses", "AllocationId", "elastic-ip")
ENDPOINT: Final = Kind(
    "endpoints", "DescribeVpcEndpoints", "VpcEndpoints", "VpcEndpointId", "vpc-endpoint"
)
SECURITY_GROUP: Final = Kind(
    "security_groups", "DescribeSecurityGroups", "SecurityGroups", "GroupId", "security-group"
)
FOREIGN_GROUP: Final = Kind(
    "foreign_groups", "DescribeSecurityGroups", "SecurityGroups", "GroupId", "security-group"
)
"""Security groups that the config names but that are in another VPC."""
