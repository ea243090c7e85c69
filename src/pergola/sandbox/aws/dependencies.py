"""Dependencies between AWS resources that moto does not enforce (spec 30 §12).

Together with the corrections of `gaps`, they make a deletion in the wrong order fail, and keep
resources that a flow forgot to delete, so that tests find them by their tags.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from pergola.sandbox.aws.answers import Answer, Call, Refusal
from pergola.sandbox.aws.gaps import Correction

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
    """A deleted subnet leaves its route table; moto keeps the association, and so the table."""

    def __init__(self) -> None:
        self._subnets: dict[str, str] = {}

    def answered(self, call: Call, answer: Answer) -> None:
        """Record which subnets have a table."""
        asked = call.parameters
        if call.operation == "AssociateRouteTable" and "SubnetId" in asked:
            self._subnets[answer.text("associationId")] = asked["SubnetId"]
        elif call.operation == "DisassociateRouteTable":
            self._subnets.pop(asked["AssociationId"], None)
        elif call.operation == "ReplaceRouteTableAssociation":
            subnet = self._subnets.pop(asked["AssociationId"], "")
            self._subnets[answer.text("newAssociationId")] = subnet

    def afterwards(self, call: Call) -> list[Call]:
        """Return the calls that end the associations of a deleted subnet."""
        if call.operation != "DeleteSubnet":
            return []
        gone = [
            name for name, subnet in self._subnets.items() if subnet == call.parameters["SubnetId"]
        ]
        for name in gone:
            del self._subnets[name]
        return [_more(call, "DisassociateRouteTable", AssociationId=name) for name in gone]


class EndpointsInTables(Correction):
    """A gateway endpoint with route tables can be deleted; moto fails if tables were added later.

    moto also fails on endpoints that were created without a type, which are gateways in AWS; it
    modifies deleted endpoints, and keeps deleted tables in existing ones.
    """

    def __init__(self) -> None:
        self._tables: dict[str, set[str]] = {}
        self._deleted: set[str] = set()

    def refusal(self, call: Call) -> Refusal | None:
        """Refuse to modify a deleted endpoint, or to add a deleted table."""
        if call.operation != "ModifyVpcEndpoint":
            return None
        for name in (call.parameters["VpcEndpointId"], *call.values("AddRouteTableId")):
            if name in self._deleted:
                kind = "VpcEndpointId" if name.startswith("vpce") else "RouteTableID"
                return Refusal(f"Invalid{kind}.NotFound", f"'{name}' does not exist")
        return None

    def request(self, call: Call) -> Call:
        """Return the call with AWS's default for the endpoint's type."""
        if call.operation != "CreateVpcEndpoint":
            return call
        return call._replace(parameters={"VpcEndpointType": "Gateway", **call.parameters})

    def beforehand(self, call: Call) -> list[Call]:
        """Return the calls that take an endpoint out of tables before it is deleted."""
        if call.operation != "DeleteVpcEndpoints":
            return []
        return [
            _without(call, name, tables)
            for name in call.values("VpcEndpointId")
            if (tables := self._tables.pop(name, None))
        ]

    def answered(self, call: Call, answer: Answer) -> None:
        """Record added tables, and all deletions."""
        if call.operation == "ModifyVpcEndpoint":
            tables = self._tables.setdefault(call.parameters["VpcEndpointId"], set())
            tables.update(call.values("AddRouteTableId"))
            tables.difference_update(call.values("RemoveRouteTableId"))
        elif call.operation == "DeleteVpcEndpoints":
            self._deleted.update(call.values("VpcEndpointId"))
        elif call.operation == "DeleteRouteTable":
            self._deleted.add(call.parameters["RouteTableId"])

    def afterwards(self, call: Call) -> list[Call]:
        """Return the calls that take endpoints out of a deleted table."""
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
        """Refuse to delete a VPC that is not empty."""
        vpc = call.parameters.get("VpcId")
        if call.operation != "DeleteVpc" or vpc not in self._inside.values():
            return None
        names = ", ".join(name for name, where in self._inside.items() if where == vpc)
        return Refusal(
            _VIOLATION, f"The vpc '{vpc}' has dependencies and cannot be deleted: {names}"
        )

    def answered(self, call: Call, answer: Answer) -> None:
        """Record what each VPC contains."""
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
        """Refuse to delete a group that rules of another one name."""
        name = call.parameters.get("GroupId", "")
        if call.operation == "DeleteSecurityGroup":
            for group, named in self._naming:
                if named == name != group:
                    return Refusal(_VIOLATION, f"resource {name} has a dependent object: {group}")
        return None

    def answered(self, call: Call, answer: Answer) -> None:
        """Record which groups name which others."""
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
        """Return a call that detaches the options, so that moto has none to delete."""
        if call.operation != "DeleteVpc":
            return []
        vpc = call.parameters["VpcId"]
        return [_more(call, "AssociateDhcpOptions", DhcpOptionsId="default", VpcId=vpc)]


class TaggedDhcpOptions(Correction):
    """DHCP options can be created with tags; moto forgets them."""

    def __init__(self) -> None:
        self._created = ""

    def answered(self, call: Call, answer: Answer) -> None:
        """Record the id to tag."""
        if call.operation == "CreateDhcpOptions":
            self._created = answer.text("dhcpOptionsId")

    def afterwards(self, call: Call) -> list[Call]:
        """Return the call that sets the tags of the creation."""
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
    """Yield the ids of what a call takes out of a VPC."""
    if call.operation == "DeleteSecurityGroup":
        yield call.parameters.get("GroupId", "")
    elif call.operation == "DetachInternetGateway":
        yield call.parameters["InternetGatewayId"]
    elif call.operation == "DeleteEgressOnlyInternetGateway":
        yield call.parameters["EgressOnlyInternetGatewayId"]
    elif call.operation == "DeleteVpcEndpoints":
        yield from call.values("VpcEndpointId")


def _without(call: Call, endpoint: str, tables: Iterable[str]) -> Call:
    """Return a call that takes an endpoint out of route tables."""
    leaving = {f"RemoveRouteTableId.{n}": table for n, table in enumerate(sorted(tables), 1)}
    return _more(call, "ModifyVpcEndpoint", VpcEndpointId=endpoint, **leaving)


def _more(call: Call, operation: str, **parameters: str) -> Call:
    """Return an extra call that accompanies another one."""
    version = call.parameters["Version"]
    return Call(call.service, operation, {"Action": operation, "Version": version, **parameters})
