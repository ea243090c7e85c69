"""What moto is told and forgets, where AWS does not (spec 30 §12)."""

import re
from typing import Final

from pergola.testing.aws_answers import Answer, Call, put, text_at
from pergola.testing.aws_gaps import Correction

_TAG: Final = re.compile(r"TagSpecification\.\d+\.(Tag\.\d+\.(?:Key|Value))")
_IDS: Final = {
    "CreateDhcpOptions": "dhcpOptionsId",
    "CreateSubnetCidrReservation": "subnetCidrReservationId",
}


class CreationTags(Correction):
    """DHCP options and reservations have the tags they are created with; in moto they have none."""

    def __init__(self) -> None:
        self._created = ""

    def answered(self, call: Call, answer: Answer) -> None:
        """Learns what was created."""
        if call.operation in _IDS:
            self._created = answer.text(_IDS[call.operation])

    def afterwards(self, call: Call) -> list[Call]:
        """The tags, in a call of their own."""
        tags = {
            found[1]: text for key, text in call.parameters.items() if (found := _TAG.match(key))
        }
        if call.operation not in _IDS or not tags:
            return []
        parameters = {
            "Action": "CreateTags",
            "Version": call.parameters["Version"],
            "ResourceId.1": self._created,
            **tags,
        }
        return [Call("ec2", "CreateTags", parameters)]


class Dns64(Correction):
    """A subnet says whether its DNS translates for IPv6; moto takes the attribute and drops it."""

    def __init__(self) -> None:
        self._on: dict[str, str] = {}

    def answered(self, call: Call, answer: Answer) -> None:
        """Learns where it was switched on, and shows it."""
        asked = call.parameters.get("EnableDns64.Value")
        if call.operation == "ModifySubnetAttribute" and asked is not None:
            self._on[call.parameters["SubnetId"]] = asked
        elif call.operation == "DescribeSubnets":
            for _, item in answer.items("subnetSet"):
                put(item, "enableDns64", self._on.get(text_at(item, "subnetId"), "false"))
