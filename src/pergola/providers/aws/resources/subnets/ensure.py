"""Creation of a zone's subnets if their ranges are new, with all attributes at once."""

from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.errors import NotFound
from pergola.providers.aws import state as keys
from pergola.providers.aws.config import Zone
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources import tags
from pergola.providers.aws.resources.adoption import refresh, remember, tag_changes
from pergola.providers.aws.resources.decision import Call, Decision, all_done, in_turn, together
from pergola.providers.aws.resources.kinds import SUBNET
from pergola.providers.aws.resources.ours import vpc_of
from pergola.providers.aws.resources.step import LONG_TIMEOUT, Step, Work
from pergola.providers.aws.resources.subnets.desired import Subnet, subnets_of
from pergola.providers.aws.resources.subnets.identity import known_subnet, one
from pergola.providers.aws.resources.subnets.ipv6_ranges import in_free_range, ipv6_range_of
from pergola.providers.aws.resources.waiting import once_visible, wait_until
from pergola.providers.aws.resources.zone_suffixes import zone_suffix

_AVAILABLE: Final = "available"
_AUTO: Final = "AssignIpv6AddressOnCreation"
_DNS64: Final = "EnableDns64"
_AAAA: Final = "EnableResourceNameDnsAAAARecord"
_HOSTNAME: Final = "HostnameType"
_RESOURCE_NAME: Final = "resource-name"
_PARAMETERS: Final = {
    _AUTO: _AUTO,
    _DNS64: _DNS64,
    _AAAA: "EnableResourceNameDnsAAAARecordOnLaunch",
    _HOSTNAME: "PrivateDnsHostnameTypeOnLaunch",
}


def steps(desired: Desired, zone: Zone) -> list[Step]:
    """Return the step for all subnets of a zone."""
    before = (names.VPC, names.IPV6_BLOCK, names.REMOVED_ZONES)
    return [
        Step(
            name=names.subnets(zone.name),
            observe=partial(_observe, zone=zone),
            decide=partial(_decide, zone=zone),
            after=before,
            timeout=LONG_TIMEOUT,
        )
    ]


async def _observe(work: Work, zone: Zone) -> None:
    subnets = list(subnets_of(work.desired, zone))
    await all_done(*(refresh(work, one(subnet)) for subnet in subnets))
    existing = [name for subnet in subnets if (name := known_subnet(work, subnet))]
    waiting = [name for name in existing if not _is_available(work, name)]
    if waiting:
        await wait_until(work, lambda: _all_available(work, waiting))


def _decide(work: Work, zone: Zone) -> Decision:
    subnets = [(subnet, known_subnet(work, subnet)) for subnet in subnets_of(work.desired, zone)]
    record = {subnet.key: name or "" for subnet, name in subnets}
    record[keys.zone_key(zone.name, keys.SUFFIX)] = zone_suffix(work, zone.name)
    missing = [subnet for subnet, name in subnets if name is None]
    if missing:
        creations = (partial(_create, work, subnet) for subnet in missing)
        return Decision.creation(", ".join(map(str, missing)), together(*creations), record=record)
    existing = {name: _changes(work, subnet, name) for subnet, name in subnets if name}
    changed = {name: changes for name, changes in existing.items() if changes}
    if not changed:
        return Decision.keep(", ".join(existing), record)
    said = "; ".join(f"{name}: {', '.join(changes)}" for name, changes in changed.items())
    calls = (in_turn(*changes.values()) for changes in changed.values())
    return Decision.change(said, together(*calls), record=record)


def _changes(work: Work, subnet: Subnet, name: str) -> dict[str, Call]:
    """Return the corrections of a subnet; a new one still lacks attributes."""
    thing = work.snapshot.subnets[name]
    changes: dict[str, Call] = {}
    if subnet.ipv6 and not ipv6_range_of(thing):
        changes["an IPv6 range"] = partial(_associate_range, work, subnet, name)
    for field, value in _attributes(subnet, thing).items():
        changes[field] = partial(_modify, work, name, field, value)
    return changes | tag_changes(work, one(subnet), name)


async def _create(work: Work, subnet: Subnet) -> None:
    parameters: JsonObject = {
        "VpcId": vpc_of(work),
        "AvailabilityZone": subnet.zone,
        "TagSpecifications": tags.specification(SUBNET.type, one(subnet).tags(work)),
    }
    if subnet.native:
        parameters["Ipv6Native"] = True
    else:
        parameters["CidrBlock"] = subnet.cidr
    if not subnet.ipv6:
        answer = await once_visible(work, "CreateSubnet", **parameters)
    else:
        answer = await in_free_range(work, subnet, "CreateSubnet", parameters)
    remember(work, one(subnet), answer)


def _is_available(work: Work, name: str) -> bool:
    return bool(work.snapshot.subnets[name].get("State") == _AVAILABLE)


async def _all_available(work: Work, ids: list[str]) -> bool | None:
    try:
        answer = await work.aws.call("ec2", "DescribeSubnets", SubnetIds=ids)
    except NotFound:
        return None
    found = {each["SubnetId"]: each for each in answer.get("Subnets") or []}
    work.snapshot.subnets |= found
    states = [found.get(name, {}).get("State") for name in ids]
    return all(state == _AVAILABLE for state in states) or None


async def _associate_range(work: Work, subnet: Subnet, name: str) -> None:
    answer = await in_free_range(work, subnet, "AssociateSubnetCidrBlock", {"SubnetId": name})
    association = answer["Ipv6CidrBlockAssociation"]
    work.snapshot.subnets[name].setdefault("Ipv6CidrBlockAssociationSet", []).append(association)


async def _modify(work: Work, name: str, field: str, value: object) -> None:
    given = {_PARAMETERS[field]: value if field == _HOSTNAME else {"Value": value}}
    await once_visible(work, "ModifySubnetAttribute", SubnetId=name, **given)
    thing = work.snapshot.subnets[name]
    _launch_options(thing)[field] = value
    thing[field] = value


def _launch_options(thing: JsonObject) -> JsonObject:
    options: JsonObject = thing.setdefault("PrivateDnsNameOptionsOnLaunch", {})
    return options


def _attributes(subnet: Subnet, thing: JsonObject) -> JsonObject:
    """Return the attributes of a subnet for nodes that still have to be corrected.

    Without IPv4, names of instances resolve to IPv6 addresses, and DNS64 translates.
    """
    if not subnet.gives_ipv6:
        return {}
    desired: JsonObject = {_AUTO: True}
    if subnet.native:
        desired |= {_DNS64: True, _HOSTNAME: _RESOURCE_NAME, _AAAA: True}
    present = {**thing, **(thing.get("PrivateDnsNameOptionsOnLaunch") or {})}
    return {field: value for field, value in desired.items() if present.get(field) != value}
