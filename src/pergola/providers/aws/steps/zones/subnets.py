"""The subnets of a zone: created where their range is new, and with all attributes at once."""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.errors import CloudError, NotFound
from pergola.extension_api.errors import Code, ExtensionError
from pergola.flow import State
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws import tags
from pergola.providers.aws.config import Zone
from pergola.providers.aws.snapshot import tags_of
from pergola.providers.aws.step import LONG_TIMEOUT, Step, Work
from pergola.providers.aws.steps import names
from pergola.providers.aws.steps.finding import SUBNET, in_vpc, refresh, remember
from pergola.providers.aws.steps.waiting import all_done, once_visible, wait_until
from pergola.providers.aws.steps.zones.wanted_subnets import (
    PLACES,
    Subnet,
    ipv6_range_of,
    part,
    places_of,
    places_taken,
    subnets_of,
)
from pergola.providers.aws.wanted import Wanted

_AVAILABLE: Final = "available"
_CONFLICT: Final = "InvalidSubnet.Conflict"
_RANGE_BITS: Final = 64
_AUTO: Final = "AssignIpv6AddressOnCreation"
_DNS64: Final = "EnableDns64"
_AAAA: Final = "EnableResourceNameDnsAAAARecord"
_HOSTNAME: Final = "HostnameType"
_RESOURCE_NAME: Final = "resource-name"


def steps(wanted: Wanted, zone: Zone) -> list[Step]:
    """The step for all subnets of a zone."""
    before = (names.VPC, names.IPV6_BLOCK, names.REMOVED_ZONES)
    return [
        Step(
            name=names.subnets(zone.name),
            plan=lambda work: _plan(work, zone),
            ensure=lambda work: _ensure(work, zone),
            after=before,
            timeout=LONG_TIMEOUT,
        )
    ]


def zone_suffix(work: Work, zone: str) -> str:
    """The `zN` that a zone has, or would get; the state stays as it is."""
    state = State(work.state.snapshot())
    keep_suffixes(work.wanted, state)
    return keys.suffix_of(state, zone)


def keep_suffixes(wanted: Wanted, state: State) -> None:
    """Gives all zones their `zN`, in the order of the config."""
    for zone in wanted.config.networks.zones:
        keys.suffix_of(state, zone.name)


def known_subnet(work: Work, subnet: Subnet) -> str | None:
    """The id of a subnet that was created before: of the state, else by zone and range.

    Raises:
        ExtensionError: several have the tags of one without IPv4.
    """
    name = work.state.get(subnet.key)
    thing = SUBNET.named(work, name)
    if thing is not None and _is(work, subnet, thing):
        return name
    accepted = {name: thing for name, thing in _owned(work) if _is(work, subnet, thing)}
    if not subnet.native:
        return next(iter(accepted), None)
    suffix = subnet.suffix(zone_suffix(work, subnet.zone))
    return tags.only_one(work, accepted, suffix, **subnet.tags)


def _owned(work: Work) -> Iterator[tuple[str, JsonObject]]:
    for name, thing in work.snapshot.subnets.items():
        if work.wanted.owns(tags_of(thing)):
            yield name, thing


def _is(work: Work, subnet: Subnet, thing: JsonObject) -> bool:
    if not in_vpc(work)(thing) or thing.get("AvailabilityZone") != subnet.zone:
        return False
    native = bool(thing.get("Ipv6Native"))
    return native if subnet.native else not native and thing.get("CidrBlock") == subnet.cidr


def _tags(work: Work, subnet: Subnet) -> dict[str, str]:
    return work.wanted.tags(subnet.suffix(zone_suffix(work, subnet.zone)), **subnet.tags)


def _plan(work: Work, zone: Zone) -> Note:
    subnets = [(each, known_subnet(work, each)) for each in subnets_of(work.wanted, zone)]
    missing = [str(each) for each, name in subnets if name is None]
    if missing:
        return Note(Fate.CREATE, ", ".join(missing))
    kept = {name: each for each, name in subnets if name}
    changed = [
        f"{name}: {', '.join(changes)}"
        for name, each in kept.items()
        if (changes := _changes(work, each, work.snapshot.subnets[name]))
    ]
    if changed:
        return Note(Fate.CHANGE, "; ".join(changed))
    return Note(Fate.KEEP, ", ".join(kept))


def _changes(work: Work, subnet: Subnet, thing: JsonObject) -> list[str]:
    changes = list(_attributes(subnet, thing))
    if subnet.ipv6 and not ipv6_range_of(thing):
        changes.append("an IPv6 range")
    if any(tags.differing(work, thing, _tags(work, subnet))):
        changes.append("its tags")
    return changes


async def _ensure(work: Work, zone: Zone) -> None:
    keep_suffixes(work.wanted, work.state)
    subnets = list(subnets_of(work.wanted, zone))
    await all_done(*(_find_or_create(work, subnet) for subnet in subnets))
    named = {work.state.get(subnet.key) or "": subnet for subnet in subnets}
    await _wait(work, list(named))
    await all_done(*(_put_right(work, name, subnet) for name, subnet in named.items()))


async def _find_or_create(work: Work, subnet: Subnet) -> None:
    await refresh(work, SUBNET, subnet.key)
    name = known_subnet(work, subnet)
    if name is None:
        work.state.forget(subnet.key)
        await _create(work, subnet)
    else:
        work.state.set(subnet.key, name)


async def _create(work: Work, subnet: Subnet) -> None:
    parameters: JsonObject = {
        "VpcId": work.state.get(keys.VPC),
        "AvailabilityZone": subnet.zone,
        "TagSpecifications": tags.specification(SUBNET.resource, _tags(work, subnet)),
    }
    if subnet.native:
        parameters["Ipv6Native"] = True
    else:
        parameters["CidrBlock"] = subnet.cidr
    if not subnet.ipv6:
        answer = await once_visible(work, "CreateSubnet", **parameters)
    else:
        answer = await _in_free_range(work, subnet, "CreateSubnet", parameters)
    remember(work, SUBNET, subnet.key, answer["Subnet"])


async def _in_free_range(
    work: Work, subnet: Subnet, operation: str, parameters: JsonObject
) -> JsonObject:
    """The call with the first IPv6 range that is free, beginning at the subnet's own place."""
    for ipv6_range in _free_ranges(work, subnet):
        try:
            return await once_visible(work, operation, **parameters, Ipv6CidrBlock=ipv6_range)
        except CloudError as error:
            is_ipv4 = subnet.cidr is not None and subnet.cidr in str(error)
            if error.code != _CONFLICT or is_ipv4:
                raise
    raise ExtensionError(
        f"VPC {work.state.get(keys.VPC)} has no free IPv6 range for the subnet "
        f'"{subnet.prefix}" in {subnet.zone}: delete subnets that nobody uses',
        Code.DEPENDENCIES,
    )


def _free_ranges(work: Work, subnet: Subnet) -> Iterator[str]:
    """The subnet's own range, then those that are nobody's, at last those of other subnets."""
    block = work.state.get(keys.VPC_IPV6_BLOCK) or ""
    taken = places_taken(block, [*filter(in_vpc(work), work.snapshot.subnets.values())])
    others = range(places_of(work.wanted))
    if subnet.place not in taken:
        yield part(block, _RANGE_BITS, subnet.place)
    for place in sorted(range(PLACES), key=lambda each: (each in others, each)):
        if place not in taken | {subnet.place}:
            yield part(block, _RANGE_BITS, place)


async def _wait(work: Work, ids: list[str]) -> None:
    """Until all are available; what is asked for is read again, with all attributes."""
    waiting = [name for name in ids if work.snapshot.subnets[name].get("State") != _AVAILABLE]
    if waiting:
        await wait_until(work, lambda: _all_available(work, waiting))


async def _all_available(work: Work, ids: list[str]) -> bool | None:
    try:
        answer = await work.aws.call("ec2", "DescribeSubnets", SubnetIds=ids)
    except NotFound:
        return None
    found = {each["SubnetId"]: each for each in answer.get("Subnets") or []}
    work.snapshot.subnets |= found
    states = [found.get(name, {}).get("State") for name in ids]
    return all(state == _AVAILABLE for state in states) or None


async def _put_right(work: Work, name: str, subnet: Subnet) -> None:
    """What may differ from a subnet that is just as it was created."""
    thing = work.snapshot.subnets[name]
    await tags.retag(work, name, thing, _tags(work, subnet))
    if subnet.ipv6 and not ipv6_range_of(thing):
        answer = await _in_free_range(work, subnet, "AssociateSubnetCidrBlock", {"SubnetId": name})
        thing.setdefault("Ipv6CidrBlockAssociationSet", []).append(
            answer["Ipv6CidrBlockAssociation"]
        )
    for field, value in _attributes(subnet, thing).items():
        parameter, wrapped = _PARAMETERS[field], {"Value": value}
        given = {parameter: value if field == _HOSTNAME else wrapped}
        await once_visible(work, "ModifySubnetAttribute", SubnetId=name, **given)
        _launch_options(thing)[field] = value
        thing[field] = value


_PARAMETERS: Final = {
    _AUTO: _AUTO,
    _DNS64: _DNS64,
    _AAAA: "EnableResourceNameDnsAAAARecordOnLaunch",
    _HOSTNAME: "PrivateDnsHostnameTypeOnLaunch",
}


def _launch_options(thing: JsonObject) -> JsonObject:
    options: JsonObject = thing.setdefault("PrivateDnsNameOptionsOnLaunch", {})
    return options


def _attributes(subnet: Subnet, thing: JsonObject) -> JsonObject:
    """The attributes of a subnet for nodes that are not yet as they should be.

    Where there is no IPv4, names of instances lead to IPv6 addresses, and DNS translates.
    """
    if not subnet.gives_ipv6:
        return {}
    wanted: JsonObject = {_AUTO: True}
    if subnet.native:
        wanted |= {_DNS64: True, _HOSTNAME: _RESOURCE_NAME, _AAAA: True}
    present = {**thing, **(thing.get("PrivateDnsNameOptionsOnLaunch") or {})}
    return {field: value for field, value in wanted.items() if present.get(field) != value}
