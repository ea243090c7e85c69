"""Attributes that moto drops, or needs half a minute to store (spec 30 §12)."""

import re
from collections.abc import Mapping
from typing import Final
from xml.etree.ElementTree import Element

from pergola.sandbox.aws.answers import Answer, Call, child, children, put, text_at
from pergola.sandbox.aws.gaps import Correction

_TAG: Final = re.compile(r"TagSpecification\.\d+\.(Tag\.\d+\.(?:Key|Value))")
_WITHOUT_TAGS: Final = {
    "CreateDhcpOptions": "dhcpOptionsId",
    "CreateSubnetCidrReservation": "subnetCidrReservationId",
}
_FEW_ADDRESSES: Final = 126
_DNS64: Final = "enableDns64"
_OF_AMAZON: Final = "AmazonProvidedIpv6CidrBlock"
_IPV6_SOURCES: Final = {_OF_AMAZON, "Ipv6IpamPoolId", "Ipv6CidrBlock"}
_LAUNCH: Final = {
    "EnableDns64.Value": _DNS64,
    "EnableResourceNameDnsAAAARecordOnLaunch.Value": "enableResourceNameDnsAAAARecord",
    "PrivateDnsHostnameTypeOnLaunch": "hostnameType",
}


def forgotten() -> tuple[Correction, ...]:
    """Return all of these corrections."""
    return CreationTags(), SubnetAttributes(), Reservations(), BlackHoles(), DefaultEgress()


class CreationTags(Correction):
    """DHCP options and reservations have the tags of their creation; in moto they have none."""

    def __init__(self) -> None:
        self._created = ""

    def answered(self, call: Call, answer: Answer) -> None:
        """Record the creation."""
        if call.operation in _WITHOUT_TAGS:
            self._created = answer.text(_WITHOUT_TAGS[call.operation])

    def afterwards(self, call: Call) -> list[Call]:
        """Return a call that sets the tags."""
        tags = {
            found[1]: text for key, text in call.parameters.items() if (found := _TAG.match(key))
        }
        if call.operation not in _WITHOUT_TAGS or not tags:
            return []
        parameters = {
            "Action": "CreateTags",
            "Version": call.parameters["Version"],
            "ResourceId.1": self._created,
            **tags,
        }
        return [Call("ec2", "CreateTags", parameters)]


class SubnetAttributes(Correction):
    """Subnets show attributes as they were set; moto accepts those for IPv6 and drops them."""

    def __init__(self) -> None:
        self._set: dict[str, dict[str, str]] = {}

    def answered(self, call: Call, answer: Answer) -> None:
        """Record the attributes that were set, and show them."""
        if call.operation == "ModifySubnetAttribute":
            given = {
                name: call.parameters[key]
                for key, name in _LAUNCH.items()
                if key in call.parameters
            }
            self._set.setdefault(call.parameters["SubnetId"], {}).update(given)
        elif call.operation == "DescribeSubnets":
            for _, item in answer.items("subnetSet"):
                self._show(item, self._set.get(text_at(item, "subnetId"), {}))

    def _show(self, item: Element, given: Mapping[str, str]) -> None:
        put(item, _DNS64, given.get(_DNS64, "false"))
        options = child(item, "privateDnsNameOptionsOnLaunch")
        for name, value in given.items():
            if name != _DNS64 and options is not None:
                put(options, name, value)


class DefaultEgress(Correction):
    """A new security group lets everything out over IPv6 too, in a VPC that has IPv6."""

    def __init__(self) -> None:
        self._with_ipv6: set[str] = set()
        self._created = ""

    def answered(self, call: Call, answer: Answer) -> None:
        """Record VPCs with IPv6, and new groups."""
        if call.operation == "CreateVpc" and _IPV6_SOURCES & call.parameters.keys():
            if call.parameters.get(_OF_AMAZON, "true") == "true":
                self._with_ipv6.add(answer.text("vpcId"))
        elif call.operation == "AssociateVpcCidrBlock" and _IPV6_SOURCES & call.parameters.keys():
            self._with_ipv6.add(call.parameters["VpcId"])
        elif call.operation == "CreateSecurityGroup":
            self._created = answer.text("groupId")

    def afterwards(self, call: Call) -> list[Call]:
        """Return a call that adds the rule."""
        if call.operation != "CreateSecurityGroup":
            return []
        if call.parameters.get("VpcId") not in self._with_ipv6:
            return []
        parameters = {
            "Action": "AuthorizeSecurityGroupEgress",
            "Version": call.parameters["Version"],
            "GroupId": self._created,
            "IpPermissions.1.IpProtocol": "-1",
            "IpPermissions.1.Ipv6Ranges.1.CidrIpv6": "::/0",
        }
        return [Call("ec2", "AuthorizeSecurityGroupEgress", parameters)]


class Reservations(Correction):
    """An IPv6 range is reserved at once; moto stores each of its million addresses.

    So moto gets a request for a few of them, and its answers are corrected.
    """

    def __init__(self) -> None:
        self._ranges: dict[str, str] = {}

    def request(self, call: Call) -> Call:
        """Return the call with only the first addresses of the range."""
        if call.operation != "CreateSubnetCidrReservation" or ":" not in call.parameters["Cidr"]:
            return call
        first = call.parameters["Cidr"].partition("/")[0]
        few = {**call.parameters, "Cidr": f"{first}/{_FEW_ADDRESSES}"}
        return call._replace(parameters=few)

    def answered(self, call: Call, answer: Answer) -> None:
        """Record the requested range, and show it."""
        if call.operation == "CreateSubnetCidrReservation":
            name = answer.text("subnetCidrReservationId")
            self._ranges[name] = call.parameters["Cidr"]
        if call.operation.endswith(("SubnetCidrReservation", "SubnetCidrReservations")):
            for item in answer.root.iter():
                known = self._ranges.get(text_at(item, "subnetCidrReservationId"))
                if known:
                    put(item, "cidr", known)


class BlackHoles(Correction):
    """A route to a deleted network interface is a `blackhole`; in moto it stays `active`."""

    def __init__(self) -> None:
        self._gone: set[str] = set()

    def answered(self, call: Call, answer: Answer) -> None:
        """Record which interfaces are deleted, and correct the states of routes to them."""
        if call.operation == "DeleteNetworkInterface":
            self._gone.add(call.parameters.get("NetworkInterfaceId", ""))
        elif call.operation == "DescribeRouteTables":
            for _, table in answer.items("routeTableSet"):
                for route in children(table, "routeSet"):
                    if text_at(route, "networkInterfaceId") in self._gone:
                        put(route, "state", "blackhole")
