"""Contents of an account, as lines that are equal whenever the same was built.

Ids become names, times and addresses are left out, and lists are sorted; two things of one kind are
two lines.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from ipaddress import IPv6Network
from typing import Final

import orjson

from pergola.api.objects import JsonObject, JsonValue
from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import tags_of
from pergola.sandbox.aws.world import everything

_ID: Final = re.compile(r"(?<![a-z0-9-])[a-z0-9]+(?:-[a-z]+)*-[0-9a-f]{8,40}(?![0-9a-z])")
_ADDRESS: Final = re.compile(r"\b\d+\.\d+\.\d+\.\d+/32\b")
_BLOCK_SIZE: Final = 1 << (128 - 56)
_RANGE6: Final = re.compile(r"(?<![0-9a-f:])[0-9a-f]{1,4}:[0-9a-f:]*::[0-9a-f:]*/\d+")
_READY: Final = ("associated", "associating", "available", "creating", "pending")
"""States that turn into one another by waiting."""
_DIFFERENT: Final = frozenset(
    {
        "AssociationId",
        "AvailableIpAddressCount",
        "CarrierIp",
        "CreateDate",
        "CreateTime",
        "CreationTime",
        "CreationTimestamp",
        "DeleteTime",
        "InstanceProfileId",
        "IpAddress",
        "KeyPairId",
        "NetworkInterfaceId",
        "PrivateIp",
        "PrivateIpAddress",
        "PublicIp",
        "ResponseMetadata",
        "RoleId",
        "SizeInBytes",
        "Timestamp",
    }
)


async def picture(
    client: AwsClient, state: Mapping[str, str], without: Collection[str] = ()
) -> list[str]:
    """Return the contents of an account and a flow's state, line by line.

    Args:
        without: the resources to leave out, by kind and id as in `everything`.
    """
    world = {key: each for key, each in (await everything(client)).items() if key not in without}
    world |= await _reservations(client, world)
    names = dict(_names(world))
    lines = [_line(key.partition("/")[0], thing, names) for key, thing in world.items()]
    lines += [_line(f"state {key}", value, names) for key, value in state.items() if value]
    return sorted(lines)


def differences(now: Iterable[str], desired: Iterable[str]) -> list[str]:
    """Return the lines that one of two pictures has more often than the other."""
    there, wished = Counter(now), Counter(desired)
    return [f"+ {line}" for line in (there - wished).elements()] + [
        f"- {line}" for line in (wished - there).elements()
    ]


async def _reservations(
    client: AwsClient, world: Mapping[str, JsonObject]
) -> dict[str, JsonObject]:
    """Return the reserved ranges in subnets with IPv6."""
    found: dict[str, JsonObject] = {}
    for key, subnet in world.items():
        if not key.startswith("Subnets/") or not subnet.get("Ipv6CidrBlockAssociationSet"):
            continue
        answer = await client.call("ec2", "GetSubnetCidrReservations", SubnetId=subnet["SubnetId"])
        for each in answer.get("SubnetIpv6CidrReservations") or ():
            found[f"Reservations/{each['SubnetCidrReservationId']}"] = each
    return found


def _names(world: Mapping[str, JsonObject]) -> Iterator[tuple[str, str]]:
    """Yield the ids of things, each with a name."""
    for key, thing in world.items():
        kind, _, name = key.partition("/")
        said = tags_of(thing).get("Name") or thing.get("GroupName") or thing.get("KeyName")
        yield name, f"{kind} {said or 'of AWS'}"


def _line(kind: str, thing: JsonValue, names: Mapping[str, str]) -> str:
    return f"{_named(kind, names)} {orjson.dumps(_plain(thing, names)).decode()}"


def _plain(value: object, names: Mapping[str, str]) -> JsonValue:
    """Return a value without details that differ in each run."""
    match value:
        case dict():
            return {
                _named(str(key), names): _plain(each, names)
                for key, each in sorted(value.items())
                if key not in _DIFFERENT and each not in _READY
            }
        case list():
            return sorted((_plain(each, names) for each in value), key=orjson.dumps)
        case str():
            return _named(value, names)
        case bool() | int() | float() | None:
            return value
        case _:
            return type(value).__name__


def _named(text: str, names: Mapping[str, str]) -> str:
    named = _ID.sub(lambda found: names.get(found[0], found[0].rpartition("-")[0]), text)
    return _RANGE6.sub(lambda found: _in_block(found[0]), _ADDRESS.sub("address/32", named))


def _in_block(cidr: str) -> str:
    """Return an IPv6 range as its offset in the /56 of its VPC."""
    range6 = IPv6Network(cidr)
    return f"block+{int(range6.network_address) % _BLOCK_SIZE:x}/{range6.prefixlen}"
