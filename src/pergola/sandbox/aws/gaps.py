"""Differences between moto and AWS, with one `Correction` for each (spec 30 §12).

Corrections run between a client and moto: they can refuse or modify requests, and modify responses.
`corrections` inserts them in front of moto; the product is not aware of them.
"""

from typing import Final
from xml.etree.ElementTree import Element

from pergola.sandbox.aws.answers import (
    Answer,
    Call,
    Refusal,
    add,
    child,
    children,
    drop,
    local,
    put,
    tags_of_item,
    text_at,
)

PENDING: Final = "pending"
DELETING: Final = "deleting"
DELETED: Final = "deleted"
FAILED: Final = "failed"
_INTERFACES: Final = "networkInterfaceSet"
PREFIX_LIST: Final = "pl-6da54004"
"""The destination of routes to gateway endpoints; AWS has one for each service."""


class Correction:
    """A correction of one difference between moto and AWS; the base class changes nothing."""

    def refusal(self, call: Call) -> Refusal | None:
        """Return AWS's refusal, or None if AWS would accept the call."""
        return None

    def request(self, call: Call) -> Call:
        """Return the call to send to moto instead."""
        return call

    def beforehand(self, call: Call) -> list[Call]:
        """Return extra calls to send to moto before this one."""
        return []

    def answered(self, call: Call, answer: Answer) -> None:
        """Record or modify a successful response."""

    def afterwards(self, call: Call) -> list[Call]:
        """Return extra calls to send to moto once this one succeeded."""
        return []


class NatGateways(Correction):
    """A NAT gateway is `pending` at first and `deleting` for a while; moto knows neither state.

    While it exists, its subnet cannot be deleted, its elastic IP cannot be released and its VPC's
    internet gateway cannot be detached; with an elastic IP in use, it becomes `failed`.
    moto allows all of that, leaves the elastic IP associated with the deleted gateway, and ignores
    filters by tags.

    Args:
        reads: the number of reads that describe it as `pending`, or as `deleting`.

    Attributes:
        failing: the number of new gateways that become `failed`.
    """

    def __init__(self, reads: int) -> None:
        self.reads = reads
        self.failing = 0
        self._known: set[str] = set()
        self._subnets: dict[str, str] = {}
        self._vpcs: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._associations: dict[str, str] = {}
        self._pending: dict[str, int] = {}
        self._deleting: dict[str, int] = {}
        self._failed: set[str] = set()

    def refusal(self, call: Call) -> Refusal | None:
        """Refuse to delete, release or detach resources that a gateway still uses."""
        if call.operation == "DeleteNatGateway":
            name = call.parameters.get("NatGatewayId", "")
            text = f"The Nat Gateway {name} was not found"
            return None if name in self._known else Refusal("NatGatewayNotFound", text)
        return self._in_use(call)

    def request(self, call: Call) -> Call:
        """Return the call without its state filter, which only this class can evaluate."""
        if call.operation == "DescribeNatGateways":
            return call.without_filter("state")
        return call

    def answered(self, call: Call, answer: Answer) -> None:
        """Record new and deleted gateways, and correct the states of known ones."""
        if call.operation == "CreateNatGateway":
            self._learn(call, answer)
        elif call.operation == "DeleteNatGateway":
            name = answer.text("natGatewayId")
            self._pending.pop(name, None)
            self._deleting[name] = self.reads
            self._free(name)
        elif call.operation == "DescribeNatGateways":
            self._describe(call, answer)

    def afterwards(self, call: Call) -> list[Call]:
        """Return the call that disassociates a deleted gateway's elastic IP."""
        if call.operation != "DeleteNatGateway":
            return []
        association = self._associations.pop(call.parameters["NatGatewayId"], "")
        if not association:
            return []
        parameters = {
            "Action": "DisassociateAddress",
            "Version": call.parameters["Version"],
            "AssociationId": association,
        }
        return [Call("ec2", "DisassociateAddress", parameters)]

    def _in_use(self, call: Call) -> Refusal | None:
        asked = call.parameters
        if call.operation == "DeleteSubnet" and asked["SubnetId"] in self._subnets.values():
            text = f"The subnet '{asked['SubnetId']}' has dependencies and cannot be deleted."
            return Refusal("DependencyViolation", text)
        released = asked.get("AllocationId", "")
        if call.operation == "ReleaseAddress" and released in self._addresses.values():
            text = f"Address {released} is in use by a NAT gateway"
            return Refusal("InvalidIPAddress.InUse", text)
        if call.operation == "DetachInternetGateway" and asked["VpcId"] in self._vpcs.values():
            text = f"Network {asked['VpcId']} has some mapped public address(es)."
            return Refusal("DependencyViolation", text)
        return None

    def _learn(self, call: Call, answer: Answer) -> None:
        name = answer.text("natGatewayId")
        address = call.parameters.get("AllocationId", "")
        busy = address in self._addresses.values()
        self._known.add(name)
        if self.failing or busy:
            self.failing = max(0, self.failing - 1)
            self._failed.add(name)
        else:
            self._pending[name] = self.reads
            self._subnets[name] = answer.text("subnetId")
            self._vpcs[name] = answer.text("vpcId")
            self._addresses[name] = address
        if address and not busy:
            self._associations[name] = answer.text("associationId")
        for item in answer.root.iter():
            if local(item) == "natGateway":
                put(item, "state", PENDING)
                _hide_address(item)

    def _describe(self, call: Call, answer: Answer) -> None:
        filters = call.filters()
        states = filters.pop("state", None)
        for parent, item in answer.items("natGatewaySet"):
            state = self._state(text_at(item, "natGatewayId"), text_at(item, "state"))
            put(item, "state", state)
            if state in (PENDING, FAILED):
                _hide_address(item)
            tags = tags_of_item(item)
            is_tagged = all(_matches(tags, *each) for each in filters.items())
            if not is_tagged or (states is not None and state not in states):
                parent.remove(item)

    def _state(self, name: str, state: str) -> str:
        if name in self._deleting:
            return DELETING if is_left(self._deleting, name) else self._gone(name)
        if name in self._failed:
            return FAILED
        return PENDING if is_left(self._pending, name) else state

    def _gone(self, name: str) -> str:
        self._free(name)
        return DELETED

    def _free(self, name: str) -> None:
        """Forget the resources that a deleted gateway used."""
        if not self._deleting.get(name):
            for known in (self._subnets, self._vpcs, self._addresses):
                known.pop(name, None)


class Readiness(Correction):
    """Subnets are `pending` and IPv6 blocks of VPCs `associating` at first; in moto they never are.

    Args:
        reads: the number of reads that describe them so.
    """

    def __init__(self, reads: int) -> None:
        self.reads = reads
        self._pending: dict[str, int] = {}

    def answered(self, call: Call, answer: Answer) -> None:
        """Record new resources, and describe them as not ready yet."""
        if call.operation == "CreateSubnet":
            self._pending[answer.text("subnetId")] = self.reads
            for item in answer.named("subnet"):
                put(item, "state", PENDING)
        elif call.operation in ("CreateVpc", "AssociateVpcCidrBlock"):
            self._pending[answer.text("vpcId")] = self.reads
        elif call.operation == "DescribeSubnets":
            for _, item in answer.items("subnetSet"):
                if is_left(self._pending, text_at(item, "subnetId")):
                    put(item, "state", PENDING)
        elif call.operation == "DescribeVpcs":
            for _, item in answer.items("vpcSet"):
                if is_left(self._pending, text_at(item, "vpcId")):
                    _associating(item)


class SubnetBlocks(Correction):
    """A subnet's IPv6 range has a state; moto writes it in a form that clients cannot parse."""

    def answered(self, call: Call, answer: Answer) -> None:
        """Write the state as AWS does."""
        if call.operation in ("CreateSubnet", "DescribeSubnets", "AssociateSubnetCidrBlock"):
            for element in answer.root.iter():
                if local(element) == "ipv6CidrBlockState":
                    put(element, "state", _state_said(text_at(element, "state")))


class AttachedTables(Correction):
    """A subnet accepts only one route table; moto returns the existing association.

    AWS refuses with `Resource.AlreadyAssociated`, which reveals duplicate calls.
    """

    def __init__(self) -> None:
        self._associations: dict[str, str] = {}

    def refusal(self, call: Call) -> Refusal | None:
        """Refuse a second table for a subnet."""
        subnet = call.parameters.get("SubnetId", "")
        if call.operation == "AssociateRouteTable" and subnet in self._associations.values():
            text = f"the specified association for route table conflicts with that of {subnet}"
            return Refusal("Resource.AlreadyAssociated", text)
        return None

    def answered(self, call: Call, answer: Answer) -> None:
        """Record the subnets with a table."""
        asked = call.parameters
        if call.operation == "AssociateRouteTable" and "SubnetId" in asked:
            self._associations[answer.text("associationId")] = asked["SubnetId"]
        elif call.operation == "DisassociateRouteTable":
            self._associations.pop(asked["AssociationId"], None)
        elif call.operation == "ReplaceRouteTableAssociation":
            subnet = self._associations.pop(asked["AssociationId"], "")
            self._associations[answer.text("newAssociationId")] = subnet
        elif call.operation == "DeleteSubnet":
            gone = asked["SubnetId"]
            self._associations = {k: v for k, v in self._associations.items() if v != gone}


class EgressOnlyGateways(Correction):
    """DescribeEgressOnlyInternetGateways filters by tags; moto ignores these filters."""

    def answered(self, call: Call, answer: Answer) -> None:
        """Remove items that the filters do not match."""
        if call.operation != "DescribeEgressOnlyInternetGateways":
            return
        for parent, item in answer.items("egressOnlyInternetGatewaySet"):
            tags = tags_of_item(item)
            if not all(_matches(tags, *each) for each in call.filters().items()):
                parent.remove(item)


class EndpointRoutes(Correction):
    """A gateway endpoint adds a route to each of its tables; moto only stores the tables."""

    def __init__(self) -> None:
        self._tables: dict[str, set[str]] = {}

    def answered(self, call: Call, answer: Answer) -> None:
        """Record endpoints, and show their routes."""
        asked = call.parameters
        if call.operation == "CreateVpcEndpoint":
            self._tables[answer.text("vpcEndpointId")] = set(call.values("RouteTableId"))
        elif call.operation == "ModifyVpcEndpoint":
            tables = self._tables.setdefault(asked["VpcEndpointId"], set())
            tables.update(call.values("AddRouteTableId"))
            tables.difference_update(call.values("RemoveRouteTableId"))
        elif call.operation == "DeleteVpcEndpoints":
            for name in call.values("VpcEndpointId"):
                self._tables.pop(name, None)
        elif call.operation == "DescribeRouteTables":
            for _, item in answer.items("routeTableSet"):
                self._show(item)

    def _show(self, item: Element) -> None:
        routes = child(item, "routeSet")
        for endpoint, tables in self._tables.items():
            if routes is not None and text_at(item, "routeTableId") in tables:
                route = {"destinationPrefixListId": PREFIX_LIST, "gatewayId": endpoint}
                add(routes, "item", [*route.items(), ("state", "active")])


class InstanceGroups(Correction):
    """An instance has the security groups of its first interface; moto says that it has none."""

    def answered(self, call: Call, answer: Answer) -> None:
        """Add the groups to new and described instances."""
        if call.operation not in ("RunInstances", "DescribeInstances"):
            return
        for instances in answer.named("instancesSet"):
            for instance in instances:
                groups, interfaces = child(instance, "groupSet"), children(instance, _INTERFACES)
                if groups is not None and not len(groups) and interfaces:
                    groups.extend(children(interfaces[0], "groupSet"))


class IpamPools(Correction):
    """A VPC can get its IPv6 block from an IPAM pool; moto assigns none and has no pools.

    Attributes:
        known: the existing pools.
    """

    def __init__(self) -> None:
        self.known: set[str] = set()
        self._blocks: dict[str, str] = {}

    def refusal(self, call: Call) -> Refusal | None:
        """Refuse a pool that does not exist."""
        pool = call.parameters.get("Ipv6IpamPoolId")
        if pool is None or pool in self.known:
            return None
        return Refusal("InvalidIpamPoolId.NotFound", f"The ipam pool ID '{pool}' does not exist")

    def request(self, call: Call) -> Call:
        """Return the call with Amazon's pool instead of the requested one."""
        if call.operation != "CreateVpc" or "Ipv6IpamPoolId" not in call.parameters:
            return call
        others = ("Ipv6IpamPoolId", "Ipv6CidrBlock", "Ipv6NetmaskLength")
        kept = {key: value for key, value in call.parameters.items() if key not in others}
        return call._replace(parameters={**kept, "AmazonProvidedIpv6CidrBlock": "true"})

    def answered(self, call: Call, answer: Answer) -> None:
        """Show the requested block instead of the one that moto chose."""
        if call.operation == "CreateVpc" and "Ipv6CidrBlock" in call.parameters:
            self._blocks[answer.text("vpcId")] = call.parameters["Ipv6CidrBlock"]
        if call.operation in ("CreateVpc", "DescribeVpcs"):
            for item in answer.root.iter():
                block = self._blocks.get(text_at(item, "vpcId"))
                found = child(item, "ipv6CidrBlockAssociationSet", "item", "ipv6CidrBlock")
                if block and found is not None:
                    found.text = block


def is_left(left: dict[str, int], name: str) -> bool:
    """Decrement a count; return False if it was zero already."""
    reads = left.get(name, 0)
    if reads:
        left[name] = reads - 1
    return reads > 0


def _hide_address(item: Element) -> None:
    """Remove the addresses, which a NAT gateway has only once it is available."""
    for each in children(item, "natGatewayAddressSet"):
        drop(each, "publicIp", "networkInterfaceId", "privateIp", "associationId")


def _associating(item: Element) -> None:
    state = child(item, "ipv6CidrBlockAssociationSet", "item", "ipv6CidrBlockState")
    if state is not None:
        put(state, "state", "associating")


def _state_said(text: str) -> str:
    """Return the state from moto's text, such as `{'State': 'associated'}`."""
    return text.rpartition(": ")[2].strip("'}")


def _matches(tags: dict[str, str], name: str, values: list[str]) -> bool:
    if name == "tag-key":
        return any(key in tags for key in values)
    key = name.removeprefix("tag:")
    return key == name or tags.get(key) in values
