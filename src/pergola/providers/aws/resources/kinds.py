"""The kinds of EC2 resources that are listed: how they are described and stored."""

from dataclasses import dataclass, replace
from typing import Final

from pergola.api.objects import JsonObject
from pergola.providers.aws.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of resources in EC2.

    Attributes:
        field: Of a `Snapshot`.
        describe: The operation that describes them.
        items: Their name in the answer.
        id: The name of their id; with an `s`, the name of its parameter.
        type: Their type in the tags of a creation request.
        delete: The operation that deletes one, or several if it ends with an `s`.
        filters: The name of the parameter for filters.
        is_single: Whether a snapshot has at most one.
    """

    field: str
    describe: str
    items: str
    id: str
    type: str
    delete: str
    filters: str = "Filters"
    is_single: bool = False

    def in_snapshot(self, snapshot: Snapshot) -> dict[str, JsonObject]:
        """Return the described ones, by id."""
        found = getattr(snapshot, self.field)
        if self.is_single:
            return {} if found is None else {str(found[self.id]): found}
        return found  # type: ignore[no-any-return]  # the fields of other kinds are such maps

    def one(self, snapshot: Snapshot, id_: str | None) -> JsonObject | None:
        """Return the one with an id, if it was described."""
        return self.in_snapshot(snapshot).get(id_) if id_ else None

    def put(self, snapshot: Snapshot, thing: JsonObject) -> str:
        """Add a description, and return the id."""
        id_ = str(thing[self.id])
        if self.is_single:
            setattr(snapshot, self.field, thing)
        else:
            self.in_snapshot(snapshot)[id_] = thing
        return id_

    def created(self, answer: JsonObject) -> JsonObject:
        """Return the description in the answer to a creation, if it is not the answer itself."""
        thing: JsonObject = answer.get(self.id.removesuffix("Id"), answer)
        return thing

    def drop(self, snapshot: Snapshot, id_: str) -> None:
        """Remove a description, if there is one."""
        if self.is_single:
            setattr(snapshot, self.field, None)
        else:
            self.in_snapshot(snapshot).pop(id_, None)


VPC: Final = Kind("vpc", "DescribeVpcs", "Vpcs", "VpcId", "vpc", "DeleteVpc", is_single=True)
DHCP_OPTIONS: Final = Kind(
    "dhcp_options",
    "DescribeDhcpOptions",
    "DhcpOptions",
    "DhcpOptionsId",
    "dhcp-options",
    "DeleteDhcpOptions",
)
INTERNET_GATEWAY: Final = Kind(
    "internet_gateways",
    "DescribeInternetGateways",
    "InternetGateways",
    "InternetGatewayId",
    "internet-gateway",
    "DeleteInternetGateway",
)
EGRESS_ONLY_GATEWAY: Final = Kind(
    "egress_only_gateways",
    "DescribeEgressOnlyInternetGateways",
    "EgressOnlyInternetGateways",
    "EgressOnlyInternetGatewayId",
    "egress-only-internet-gateway",
    "DeleteEgressOnlyInternetGateway",
)
SUBNET: Final = Kind("subnets", "DescribeSubnets", "Subnets", "SubnetId", "subnet", "DeleteSubnet")
ROUTE_TABLE: Final = Kind(
    "route_tables",
    "DescribeRouteTables",
    "RouteTables",
    "RouteTableId",
    "route-table",
    "DeleteRouteTable",
)
NAT_GATEWAY: Final = Kind(
    "nat_gateways",
    "DescribeNatGateways",
    "NatGateways",
    "NatGatewayId",
    "natgateway",
    "DeleteNatGateway",
    filters="Filter",
)
ADDRESS: Final = Kind(
    "addresses",
    "DescribeAddresses",
    "Addresses",
    "AllocationId",
    "elastic-ip",
    "ReleaseAddress",
)
ENDPOINT: Final = Kind(
    "endpoints",
    "DescribeVpcEndpoints",
    "VpcEndpoints",
    "VpcEndpointId",
    "vpc-endpoint",
    "DeleteVpcEndpoints",
)
SECURITY_GROUP: Final = Kind(
    "security_groups",
    "DescribeSecurityGroups",
    "SecurityGroups",
    "GroupId",
    "security-group",
    "DeleteSecurityGroup",
)
KEY_PAIR: Final = Kind(
    "key_pair",
    "DescribeKeyPairs",
    "KeyPairs",
    "KeyName",
    "key-pair",
    "DeleteKeyPair",
    is_single=True,
)
FOREIGN_GROUP: Final = replace(SECURITY_GROUP, field="foreign_groups")
"""Security groups that the config names but that are in another VPC."""
