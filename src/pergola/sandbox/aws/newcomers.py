"""AWS's eventual consistency: not every read sees new things at once (spec 30 §12)."""

from typing import Final, NamedTuple

from pergola.sandbox.aws.answers import Answer, Call, Refusal, text_at
from pergola.sandbox.aws.gaps import Correction, is_left


class Newcomers(Correction):
    """A read may not see new things yet; moto has no such eventual consistency.

    Attributes:
        reads: how many reads leave a new thing out of lists, or report that its id does not
            exist. Writes see it.
    """

    def __init__(self) -> None:
        self.reads = 0
        self._hidden: dict[str, int] = {}

    def refusal(self, call: Call) -> Refusal | None:
        """Reject descriptions of hidden resources by id."""
        kind = _BY_READ.get(call.operation)
        if kind is None:
            return None
        for name in call.values(kind.parameter):
            if is_left(self._hidden, name):
                return Refusal(kind.code, f"{name} does not exist", kind.status)
        return None

    def answered(self, call: Call, answer: Answer) -> None:
        """Record new resources, and omit them from lists."""
        created = _BY_CREATION.get(call.operation)
        if created is not None and self.reads:
            name = call.parameters.get(created.parameter) or answer.text(created.id)
            self._hidden[name] = self.reads
        listed = _BY_READ.get(call.operation)
        if listed is not None and listed.items:
            for parent, item in answer.items(listed.items):
                if is_left(self._hidden, text_at(item, listed.id)):
                    parent.remove(item)


class _Kind(NamedTuple):
    """The API calls that create and read a kind of resource.

    Attributes:
        id: the element with the id.
        items: the element with the list; empty if only one can be read.
        parameter: the request parameter with the id.
        code: the error code if the id does not exist.
    """

    creation: str
    read: str
    id: str
    items: str
    parameter: str
    code: str
    status: int = 400


_KINDS: Final = (
    _Kind("CreateVpc", "DescribeVpcs", "vpcId", "vpcSet", "VpcId", "InvalidVpcID.NotFound"),
    _Kind(
        "CreateSubnet",
        "DescribeSubnets",
        "subnetId",
        "subnetSet",
        "SubnetId",
        "InvalidSubnetID.NotFound",
    ),
    _Kind(
        "CreateInternetGateway",
        "DescribeInternetGateways",
        "internetGatewayId",
        "internetGatewaySet",
        "InternetGatewayId",
        "InvalidInternetGatewayID.NotFound",
    ),
    _Kind(
        "CreateEgressOnlyInternetGateway",
        "DescribeEgressOnlyInternetGateways",
        "egressOnlyInternetGatewayId",
        "egressOnlyInternetGatewaySet",
        "EgressOnlyInternetGatewayId",
        "InvalidGatewayID.NotFound",
    ),
    _Kind(
        "CreateRouteTable",
        "DescribeRouteTables",
        "routeTableId",
        "routeTableSet",
        "RouteTableId",
        "InvalidRouteTableID.NotFound",
    ),
    _Kind(
        "CreateNatGateway",
        "DescribeNatGateways",
        "natGatewayId",
        "natGatewaySet",
        "NatGatewayId",
        "NatGatewayNotFound",
    ),
    _Kind(
        "AllocateAddress",
        "DescribeAddresses",
        "allocationId",
        "addressesSet",
        "AllocationId",
        "InvalidAllocationID.NotFound",
    ),
    _Kind(
        "CreateSecurityGroup",
        "DescribeSecurityGroups",
        "groupId",
        "securityGroupInfo",
        "GroupId",
        "InvalidGroup.NotFound",
    ),
    _Kind(
        "CreateDhcpOptions",
        "DescribeDhcpOptions",
        "dhcpOptionsId",
        "dhcpOptionsSet",
        "DhcpOptionsId",
        "InvalidDhcpOptionID.NotFound",
    ),
    _Kind(
        "CreateVpcEndpoint",
        "DescribeVpcEndpoints",
        "vpcEndpointId",
        "vpcEndpointSet",
        "VpcEndpointId",
        "InvalidVpcEndpointId.NotFound",
    ),
    _Kind(
        "ImportKeyPair",
        "DescribeKeyPairs",
        "keyName",
        "keySet",
        "KeyName",
        "InvalidKeyPair.NotFound",
    ),
    _Kind("CreateRole", "GetRole", "", "", "RoleName", "NoSuchEntity", 404),
    _Kind(
        "CreateInstanceProfile",
        "GetInstanceProfile",
        "",
        "",
        "InstanceProfileName",
        "NoSuchEntity",
        404,
    ),
)
# The answer has the id of the new resource, unless the request names it.
_NAMED: Final = ("RoleName", "InstanceProfileName", "KeyName")
_BY_CREATION: Final = {
    kind.creation: kind._replace(parameter=kind.parameter if kind.parameter in _NAMED else "")
    for kind in _KINDS
}
_BY_READ: Final = {kind.read: kind for kind in _KINDS}
