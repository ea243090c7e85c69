"""What must go before what in AWS, where moto does not mind, and what goes along (spec 30 §12).

These corrections stand with those of `aws_gaps`: with them, a deletion in a wrong order fails, and
what was forgotten is still there and can be told by its tags.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from pergola.testing.aws.answers import Answer, Call, Refusal
from pergola.testing.aws.gaps import Correction

_PAIR: Final = re.compile(r"IpPermissions\.\d+\.(?:Groups|UserIdGroupPairs)\.\d+\.GroupId")
_VIOLATION: Final = "DependencyViolation"


def dependencies() -> tuple[Correction, ...]:
    """Return all of these corrections."""
    return (
        SubnetsInTables(),
        EndpointsInTables(),
        FullVpcs(),
        NamedGroups(),
        OwnDhcpOptions(),
        TaggedDhcpOptions(),
    )


class SubnetsInTables(Correction):
    """With a subnet goes its association with a route table; moto keeps it, and so the table."""

    def __init__(self) -> None:
        self._subnets: dict[str, str] = {}

    def answered(self, call: Call, answer: Answer) -> None:
        """Learns which subnets have a table."""
        asked = call.parameters
        if call.operation == "AssociateRouteTable" and "SubnetId" in asked:
            self._subnets[answer.text("associationId")] = asked["SubnetId"]
        elif call.operation == "DisassociateRouteTable":
            self._subnets.pop(asked["AssociationId"], None)
        elif call.operation == "ReplaceRouteTableAssociation":
            subnet = self._subnets.pop(asked["AssociationId"], "")
            self._subnets[answer.text("newAssociationId")] = subnet

    def afterwards(self, call: Call) -> list[Call]:
        """Return the end of the associations of a subnet that was deleted."""
        if call.operation != "DeleteSubnet":
            return []
        gone = [
            name for name, subnet in self._subnets.items() if subnet == call.parameters["SubnetId"]
        ]
        for name in gone:
            del self._subnets[name]
        return [_more(call, "DisassociateRouteTable", AssociationId=name) for name in gone]


class EndpointsInTables(Correction):
    """A gateway endpoint with route tables can be deleted; moto fails on those that came later.

    It also fails on endpoints that were created without their type, which are gateways in AWS; it
    changes those that are deleted, and keeps tables in them that are.
    """

    def __init__(self) -> None:
        self._tables: dict[str, set[str]] = {}
        self._deleted: set[str] = set()

    def refusal(self, call: Call) -> Refusal | None:
        """For an endpoint or a table that is deleted."""
        if call.operation != "ModifyVpcEndpoint":
            return None
        for name in (call.parameters["VpcEndpointId"], *call.values("AddRouteTableId")):
            if name in self._deleted:
                kind = "VpcEndpointId" if name.startswith("vpce") else "RouteTableID"
                return Refusal(f"Invalid{kind}.NotFound", f"'{name}' does not exist")
        return None

    def request(self, call: Call) -> Call:
        """Return the type that AWS takes if none is said."""
        if call.operation != "CreateVpcEndpoint":
            return call
        return call._replace(parameters={"VpcEndpointType": "Gateway", **call.parameters})

    def beforehand(self, call: Call) -> list[Call]:
        """Return the endpoint leaves the tables to which it was added."""
        if call.operation != "DeleteVpcEndpoints":
            return []
        return [
            _without(call, name, tables)
            for name in call.values("VpcEndpointId")
            if (tables := self._tables.pop(name, None))
        ]

    def answered(self, call: Call, answer: Answer) -> None:
        """Learns which tables were added."""
        if call.operation == "ModifyVpcEndpoint":
            tables = self._tables.setdefault(call.parameters["VpcEndpointId"], set())
            tables.update(call.values("AddRouteTableId"))
            tables.difference_update(call.values("RemoveRouteTableId"))
        elif call.operation == "DeleteVpcEndpoints":
            self._deleted.update(call.values("VpcEndpointId"))
        elif call.operation == "DeleteRouteTable":
            self._deleted.add(call.parameters["RouteTableId"])

    def afterwards(self, call: Call) -> list[Call]:
        """Endpoints leave a table that is deleted."""
        if call.operation != "DeleteRouteTable":
            return []
        table = call.parameters["RouteTableId"]
        leaving = [name for name, tables in self._tables.items() if table in tables]
        for name in leaving:
            self._tables[name].discard(table)
        return [_without(call, name, {table}) for name in leaving]


class FullVpcs(Correction):
    """A VPC with gateways, endpoints or security groups cannot be deleted; moto deletes it."""

    def __init__(self) -> None:
        self._inside: dict[str, str] = {}

    def refusal(self, call: Call) -> Refusal | None:
        """For a VPC with something in it."""
        vpc = call.parameters.get("VpcId")
        if call.operation != "DeleteVpc" or vpc not in self._inside.values():
            return None
        names = ", ".join(name for name, where in self._inside.items() if where == vpc)
        return Refusal(
            _VIOLATION, f"The vpc '{vpc}' has dependencies and cannot be deleted: {names}"
        )

    def answered(self, call: Call, answer: Answer) -> None:
        """Learns what comes into a VPC and leaves it."""
        asked = call.parameters
        match call.operation:
            case "CreateSecurityGroup":
                self._inside[answer.text("groupId")] = asked.get("VpcId", "")
            case "AttachInternetGateway":
                self._inside[asked["InternetGatewayId"]] = asked["VpcId"]
            case "CreateEgressOnlyInternetGateway":
                self._inside[answer.text("egressOnlyInternetGatewayId")] = asked["VpcId"]
            case "CreateVpcEndpoint":
                self._inside[answer.text("vpcEndpointId")] = asked["VpcId"]
            case _:
                for name in _leaving(call):
                    self._inside.pop(name, None)


class NamedGroups(Correction):
    """A security group that rules of another one name cannot be deleted; moto deletes it."""

    def __init__(self) -> None:
        self._naming: set[tuple[str, str]] = set()

    def refusal(self, call: Call) -> Refusal | None:
        """For a group that is named."""
        name = call.parameters.get("GroupId", "")
        if call.operation == "DeleteSecurityGroup":
            for group, named in self._naming:
                if named == name != group:
                    return Refusal(_VIOLATION, f"resource {name} has a dependent object: {group}")
        return None

    def answered(self, call: Call, answer: Answer) -> None:
        """Learns which groups name which others."""
        del answer
        group = call.parameters.get("GroupId", "")
        pairs = {(group, named) for key, named in call.parameters.items() if _PAIR.fullmatch(key)}
        if call.operation.startswith("AuthorizeSecurityGroup"):
            self._naming |= pairs
        elif call.operation.startswith("RevokeSecurityGroup"):
            self._naming -= pairs
        elif call.operation == "DeleteSecurityGroup":
            self._naming = {pair for pair in self._naming if pair[0] != group}


class OwnDhcpOptions(Correction):
    """DHCP options stay when their VPC is deleted; moto deletes them too."""

    def beforehand(self, call: Call) -> list[Call]:
        """Return the VPC lets go of them, so that moto has none to delete."""
        if call.operation != "DeleteVpc":
            return []
        vpc = call.parameters["VpcId"]
        return [_more(call, "AssociateDhcpOptions", DhcpOptionsId="default", VpcId=vpc)]


class TaggedDhcpOptions(Correction):
    """DHCP options can be created with tags; moto forgets them."""

    def __init__(self) -> None:
        self._created = ""

    def answered(self, call: Call, answer: Answer) -> None:
        """Learns the id of what is to be tagged."""
        if call.operation == "CreateDhcpOptions":
            self._created = answer.text("dhcpOptionsId")

    def afterwards(self, call: Call) -> list[Call]:
        """Return the tags that the creation should have made."""
        prefix = "TagSpecification.1."
        tags = {
            key.removeprefix(prefix): value
            for key, value in call.parameters.items()
            if key.startswith(f"{prefix}Tag.")
        }
        if call.operation != "CreateDhcpOptions" or not tags:
            return []
        return [_more(call, "CreateTags", **{"ResourceId.1": self._created}, **tags)]


def _leaving(call: Call) -> Iterator[str]:
    """Return the ids of what a call takes out of a VPC."""
    if call.operation == "DeleteSecurityGroup":
        yield call.parameters.get("GroupId", "")
    elif call.operation == "DetachInternetGateway":
        yield call.parameters["InternetGatewayId"]
    elif call.operation == "DeleteEgressOnlyInternetGateway":
        yield call.parameters["EgressOnlyInternetGatewayId"]
    elif call.operation == "DeleteVpcEndpoints":
        yield from call.values("VpcEndpointId")


def _without(call: Call, endpoint: str, tables: Iterable[str]) -> Call:
    """Return an endpoint leaves route tables."""
    leaving = {f"RemoveRouteTableId.{n}": table for n, table in enumerate(sorted(tables), 1)}
    return _more(call, "ModifyVpcEndpoint", VpcEndpointId=endpoint, **leaving)


def _more(call: Call, operation: str, **parameters: str) -> Call:
    """Return a call beside another one."""
    version = call.parameters["Version"]
    return Call(call.service, operation, {"Action": operation, "Version": version, **parameters})
