"""Creation of a zone's subnets if their ranges are new, with all attributes at once."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.errors import NotFound
from pergola.flow.picture import Fate, Note
from pergola.providers.aws.config import Zone
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources import tags
from pergola.providers.aws.resources.adoption import refresh, remember
from pergola.providers.aws.resources.kinds import SUBNET
from pergola.providers.aws.resources.ours import vpc_of
from pergola.providers.aws.resources.step import LONG_TIMEOUT, Step, Work
from pergola.providers.aws.resources.subnets.desired import Subnet, subnets_of
from pergola.providers.aws.resources.subnets.identity import known_subnet, one
from pergola.providers.aws.resources.subnets.ipv6_ranges import in_free_range, ipv6_range_of
from pergola.providers.aws.resources.waiting import all_done, once_visible, wait_until
from pergola.providers.aws.resources.zone_suffixes import keep_suffixes

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
            plan=lambda work: _plan(work, zone),
            ensure=lambda work: _ensure(work, zone),
            after=before,
            timeout=LONG_TIMEOUT,
        )
    ]


def _plan(work: Work, zone: Zone) -> Note:
    subnets = [(each, known_subnet(work, each)) for each in subnets_of(work.desired, zone)]
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
    if any(tags.differing(work, thing, one(subnet).tags(work))):
        changes.append("its tags")
    return changes


async def _ensure(work: Work, zone: Zone) -> None:
    keep_suffixes(work.desired, work.state)
    subnets = list(subnets_of(work.desired, zone))
    await all_done(*(_find_or_create(work, subnet) for subnet in subnets))
    named = {work.state.get(subnet.key) or "": subnet for subnet in subnets}
    await _wait(work, list(named))
    await all_done(*(_put_right(work, name, subnet) for name, subnet in named.items()))


async def _find_or_create(work: Work, subnet: Subnet) -> None:
    await refresh(work, one(subnet))
    name = known_subnet(work, subnet)
    if name is None:
        work.state.forget(subnet.key)
        await _create(work, subnet)
    else:
        work.state.set(subnet.key, name)


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


async def _wait(work: Work, ids: list[str]) -> None:
    """Wait until all are available; those described again have all attributes."""
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
    """Correct the attributes of a newly created subnet."""
    thing = work.snapshot.subnets[name]
    await tags.retag(work, name, thing, one(subnet).tags(work))
    if subnet.ipv6 and not ipv6_range_of(thing):
        answer = await in_free_range(work, subnet, "AssociateSubnetCidrBlock", {"SubnetId": name})
        thing.setdefault("Ipv6CidrBlockAssociationSet", []).append(
            answer["Ipv6CidrBlockAssociation"]
        )
    for field, value in _attributes(subnet, thing).items():
        parameter, wrapped = _PARAMETERS[field], {"Value": value}
        given = {parameter: value if field == _HOSTNAME else wrapped}
        await once_visible(work, "ModifySubnetAttribute", SubnetId=name, **given)
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
