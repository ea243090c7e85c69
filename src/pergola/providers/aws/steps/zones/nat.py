"""The NAT gateway of a zone, and the wait for those of all zones (spec 30 §3.5, §13)."""

from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.errors import NotFound
from pergola.extension_api.errors import ExtensionError
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws import tags
from pergola.providers.aws.config import Zone
from pergola.providers.aws.snapshot import tags_of
from pergola.providers.aws.step import LONG_TIMEOUT, Step, Work
from pergola.providers.aws.steps import names
from pergola.providers.aws.steps.finding import NAT_GATEWAY, find, foreseen, in_vpc, remember
from pergola.providers.aws.steps.waiting import once_visible, wait_until
from pergola.providers.aws.steps.zones.addresses import NO_PUBLIC_SUBNET, wanted_address
from pergola.providers.aws.steps.zones.subnets import zone_suffix
from pergola.providers.aws.wanted import Wanted

_AVAILABLE: Final = "available"
_DELETED: Final = "deleted"
_FAILED: Final = "failed"
_USABLE: Final = frozenset({"pending", _AVAILABLE})


def steps(wanted: Wanted, zone: Zone) -> list[Step]:
    """The steps that delete a gateway with another address, and create the one that is wanted."""
    skip = None if zone.public else NO_PUBLIC_SUBNET
    outdated = Step(
        name=names.outdated_nat(zone.name),
        plan=lambda work: _plan_outdated(work, zone),
        ensure=lambda work: _delete_outdated(work, zone),
        after=(names.subnets(zone.name),),
        skip=skip,
        timeout=LONG_TIMEOUT,
    )
    # Zones may exchange their addresses: all must be free before any is used.
    zones = wanted.config.networks.zones
    others = (names.outdated_nat(each.name) for each in zones if not each.workers_subnet_id)
    gateway = Step(
        name=names.nat(zone.name),
        plan=lambda work: _plan(work, zone),
        ensure=lambda work: _ensure(work, zone),
        after=(names.INTERNET_GATEWAY, names.address(zone.name), *others),
        skip=skip,
    )
    return [outdated, gateway]


def waiting_steps(wanted: Wanted) -> list[Step]:
    """The step after which all NAT gateways are available; one request asks for all of them."""
    zones = [zone for zone in wanted.config.networks.zones if zone.public]
    return [
        Step(
            name=names.NAT_GATEWAYS,
            plan=_plan_waiting,
            ensure=_wait,
            after=tuple(names.nat(zone.name) for zone in zones),
            skip=None if zones else "no zone has a public subnet",
            timeout=LONG_TIMEOUT,
        )
    ]


async def delete_nats(work: Work, ids: list[str]) -> None:
    """Deletes NAT gateways and waits until they are gone, and their addresses free.

    Those that failed are deleted, too: AWS would keep them for an hour.

    Raises:
        CloudError: AWS refused.
    """
    for name in ids:
        if _state(work.snapshot.nat_gateways.get(name, {})) in (*_USABLE, _FAILED):
            try:
                await work.aws.call("ec2", "DeleteNatGateway", NatGatewayId=name)
            except NotFound:
                continue
    for name in ids:
        await wait_until(work, partial(_is_gone, work, name))
        _free_address(work, work.snapshot.nat_gateways.get(name, {}))


def allocation_of(gateway: JsonObject) -> str | None:
    """The elastic IP of a NAT gateway."""
    addresses = gateway.get("NatGatewayAddresses") or []
    return next((each["AllocationId"] for each in addresses if each.get("AllocationId")), None)


def public_ip_of(gateway: JsonObject) -> str | None:
    """Where requests through a NAT gateway come from; there once it is available."""
    addresses = gateway.get("NatGatewayAddresses") or []
    return next((each["PublicIp"] for each in addresses if each.get("PublicIp")), None)


def nats_of(work: Work, zone: str) -> list[str]:
    """NAT gateways of a zone that are not gone: that of the state, and those with its tags."""
    suffix = work.wanted.name(_suffix(work, zone))
    recorded = work.state.get(keys.zone_key(zone, keys.NAT_GATEWAY))
    accept = in_vpc(work)
    return [
        name
        for name, gateway in work.snapshot.nat_gateways.items()
        if accept(gateway)
        and _state(gateway) != _DELETED
        and (name == recorded or _is_named(work, gateway, suffix))
    ]


def _is_named(work: Work, gateway: JsonObject, name: str) -> bool:
    given = tags_of(gateway)
    return work.wanted.owns(given) and given.get("Name") == name


def _suffix(work: Work, zone: str) -> str:
    return f"natgw-{zone_suffix(work, zone)}"


def _state(gateway: JsonObject) -> str:
    return str(gateway.get("State", ""))


def _is_wanted(work: Work, zone: Zone, gateway: JsonObject) -> bool:
    """Whether it has the address and is in the subnet that it should."""
    subnet = work.state.get(keys.zone_key(zone.name, keys.SUBNET_PUBLIC))
    return (
        _state(gateway) in _USABLE
        and in_vpc(work)(gateway)
        and gateway.get("SubnetId") == subnet
        and allocation_of(gateway) == wanted_address(work, zone)
    )


def _outdated(work: Work, zone: Zone) -> list[str]:
    known = work.snapshot.nat_gateways
    return [name for name in nats_of(work, zone.name) if not _is_wanted(work, zone, known[name])]


def _plan_outdated(work: Work, zone: Zone) -> Note:
    outdated = _outdated(work, zone)
    if outdated:
        return Note(
            Fate.DELETE, f"{', '.join(outdated)}: failed, or with another elastic IP; no egress"
        )
    return Note(Fate.KEEP, "none failed or has another elastic IP")


async def _delete_outdated(work: Work, zone: Zone) -> None:
    outdated = _outdated(work, zone)
    if not outdated:
        return
    await delete_nats(work, outdated)
    key = keys.zone_key(zone.name, keys.NAT_GATEWAY)
    if work.state.get(key) in outdated:
        work.state.forget(key)


async def _is_gone(work: Work, name: str) -> bool | None:
    try:
        answer = await work.aws.call("ec2", "DescribeNatGateways", NatGatewayIds=[name])
    except NotFound:
        work.snapshot.nat_gateways.pop(name, None)
        return True
    for gateway in answer.get("NatGateways") or []:
        work.snapshot.nat_gateways[name] = gateway
        if _state(gateway) not in (_DELETED, _FAILED):
            return None
    return True


def _free_address(work: Work, gateway: JsonObject) -> None:
    """The snapshot learns that the address is in use no more."""
    address = work.snapshot.addresses.get(allocation_of(gateway) or "")
    if address is not None:
        address.pop("AssociationId", None)


def _plan(work: Work, zone: Zone) -> Note:
    address = wanted_address(work, zone) or "a new elastic IP"
    return foreseen(
        work,
        NAT_GATEWAY,
        keys.zone_key(zone.name, keys.NAT_GATEWAY),
        lambda gateway: _is_wanted(work, zone, gateway),
        _suffix(work, zone.name),
        new=f"with {address}",
    )


async def _ensure(work: Work, zone: Zone) -> None:
    key, suffix = keys.zone_key(zone.name, keys.NAT_GATEWAY), _suffix(work, zone.name)
    if await find(work, NAT_GATEWAY, key, lambda each: _is_wanted(work, zone, each), suffix):
        return
    answer = await once_visible(
        work,
        "CreateNatGateway",
        SubnetId=work.state.get(keys.zone_key(zone.name, keys.SUBNET_PUBLIC)),
        AllocationId=wanted_address(work, zone),
        TagSpecifications=tags.specification(NAT_GATEWAY.resource, work.wanted.tags(suffix)),
    )
    remember(work, NAT_GATEWAY, key, answer["NatGateway"])


def _ids(work: Work) -> dict[str, str]:
    """The NAT gateways of zones that have one: their keys in the state by their ids."""
    zones = (zone.name for zone in work.wanted.config.networks.zones if zone.public)
    found = (keys.zone_key(zone, keys.NAT_GATEWAY) for zone in zones)
    return {name: key for key in found if (name := work.state.get(key))}


def _waiting(work: Work) -> list[str]:
    known = work.snapshot.nat_gateways
    return [name for name in _ids(work) if not _is_available(known.get(name, {}))]


def _is_available(gateway: JsonObject) -> bool:
    return _state(gateway) == _AVAILABLE and public_ip_of(gateway) is not None


def _plan_waiting(work: Work) -> Note:
    public = [zone for zone in work.wanted.config.networks.zones if zone.public]
    if len(_ids(work)) < len(public) or _waiting(work):
        return Note(Fate.CHANGE, "until all are available, one to two minutes")
    return Note(Fate.KEEP, "all are available")


async def _wait(work: Work) -> None:
    waiting = _waiting(work)
    if waiting:
        await wait_until(work, lambda: _all_available(work, waiting))


async def _all_available(work: Work, ids: list[str]) -> bool | None:
    try:
        answer = await work.aws.call("ec2", "DescribeNatGateways", NatGatewayIds=ids)
    except NotFound:
        return None
    for gateway in answer.get("NatGateways") or []:
        work.snapshot.nat_gateways[gateway["NatGatewayId"]] = gateway
    for name in ids:
        _check(work, work.snapshot.nat_gateways[name])
    return not _waiting(work) or None


def _check(work: Work, gateway: JsonObject) -> None:
    """A gateway that failed never becomes available: the next run creates another one.

    Raises:
        ExtensionError: it failed, or somebody deleted it.
    """
    name = gateway["NatGatewayId"]
    if _state(gateway) in _USABLE:
        return
    work.state.forget(_ids(work)[name])
    why = f"{gateway.get('FailureCode', '')}: {gateway.get('FailureMessage', '')}".strip(": ")
    raise ExtensionError(
        f"NAT gateway {name} is {_state(gateway)}{f' ({why})' if why else ''}; "
        "another one is created at the next attempt"
    )
