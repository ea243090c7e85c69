"""Create the NAT gateway of a zone, and replace one with another elastic IP (spec 30 §3.5)."""

from dataclasses import replace
from functools import partial

from pergola.api.objects import JsonObject
from pergola.cloud.errors import NotFound
from pergola.providers.aws import state as keys
from pergola.providers.aws.config import Zone
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.adoption import create_or_keep, refresh
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.elastic_ips import NO_PUBLIC_SUBNET, desired_address
from pergola.providers.aws.resources.nat_gateways.facts import (
    DELETED,
    FAILED,
    USABLE,
    allocation_of,
    nats_of,
    of_zone,
    state_of,
)
from pergola.providers.aws.resources.ours import Ours, in_vpc
from pergola.providers.aws.resources.step import LONG_TIMEOUT, Step, Work
from pergola.providers.aws.resources.waiting import wait_until


def steps(desired: Desired, zone: Zone) -> list[Step]:
    """Return the steps that delete a gateway with another address, and create the right one."""
    skip = None if zone.public else NO_PUBLIC_SUBNET
    outdated = Step(
        name=names.outdated_nat(zone.name),
        decide=partial(_decide_about_outdated, zone=zone),
        after=(names.subnets(zone.name),),
        skip=skip,
        timeout=LONG_TIMEOUT,
    )
    # Zones may swap their addresses: all must be free before any is used.
    zones = desired.config.networks.zones
    others = (names.outdated_nat(each.name) for each in zones if not each.workers_subnet_id)
    gateway = Step(
        name=names.nat(zone.name),
        observe=partial(refresh, ours=of_zone(zone.name)),
        decide=partial(_decide, zone=zone),
        after=(names.INTERNET_GATEWAY, names.address(zone.name), *others),
        skip=skip,
    )
    return [outdated, gateway]


async def delete_nats(work: Work, ids: list[str]) -> None:
    """Delete NAT gateways, and wait until they are gone and their addresses free.

    Failed ones are deleted as well: AWS would keep them for an hour.

    Raises:
        CloudError: AWS refused.
    """
    for name in ids:
        if state_of(work.snapshot.nat_gateways.get(name, {})) in (*USABLE, FAILED):
            try:
                await work.aws.call("ec2", "DeleteNatGateway", NatGatewayId=name)
            except NotFound:
                continue
    for name in ids:
        await wait_until(work, partial(_is_gone, work, name))
        _free_address(work, work.snapshot.nat_gateways.get(name, {}))


def _is_desired(work: Work, zone: Zone, gateway: JsonObject) -> bool:
    """Return whether it has the right address and is in the right subnet."""
    subnet = work.state.get(keys.zone_key(zone.name, keys.SUBNET_PUBLIC))
    return (
        state_of(gateway) in USABLE
        and in_vpc(work, gateway)
        and gateway.get("SubnetId") == subnet
        and allocation_of(gateway) == desired_address(work, zone)
    )


def _decide_about_outdated(work: Work, zone: Zone) -> Decision:
    known = work.snapshot.nat_gateways
    outdated = [id_ for id_ in nats_of(work, zone.name) if not _is_desired(work, zone, known[id_])]
    if not outdated:
        return Decision.keep("none failed or has another elastic IP")
    key = of_zone(zone.name).key
    return Decision.deletion(
        f"{', '.join(outdated)}: failed, or with another elastic IP; no egress",
        partial(delete_nats, work, outdated),
        forget=(key,) if work.state.get(key) in outdated else (),
    )


async def _is_gone(work: Work, name: str) -> bool | None:
    try:
        answer = await work.aws.call("ec2", "DescribeNatGateways", NatGatewayIds=[name])
    except NotFound:
        work.snapshot.nat_gateways.pop(name, None)
        return True
    for gateway in answer.get("NatGateways") or []:
        work.snapshot.nat_gateways[name] = gateway
        if state_of(gateway) not in (DELETED, FAILED):
            return None
    return True


def _free_address(work: Work, gateway: JsonObject) -> None:
    """Record in the snapshot that the address is no longer in use."""
    address = work.snapshot.addresses.get(allocation_of(gateway) or "")
    if address is not None:
        address.pop("AssociationId", None)


def _desired(zone: Zone) -> Ours:
    return replace(of_zone(zone.name), accept=lambda work, each: _is_desired(work, zone, each))


def _decide(work: Work, zone: Zone) -> Decision:
    address = desired_address(work, zone)
    return create_or_keep(
        work,
        _desired(zone),
        f"with {address or 'a new elastic IP'}",
        "CreateNatGateway",
        SubnetId=work.state.get(keys.zone_key(zone.name, keys.SUBNET_PUBLIC)),
        AllocationId=address,
    )
