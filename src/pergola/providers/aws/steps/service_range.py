"""The IPv6 range of Services: reserved in a worker subnet, then never changed (spec 30 §10.5).

It is the only thing besides tags that is changed in a subnet that was brought. Clusters that share
a subnet share the reservation, too: addresses of Services never leave their cluster.
"""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.errors import NotFound
from pergola.extension_api.errors import Code, ExtensionError
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws import tags
from pergola.providers.aws.step import LONG_TIMEOUT, Step, Work
from pergola.providers.aws.steps import names
from pergola.providers.aws.steps.waiting import once_visible
from pergola.providers.aws.steps.zones.wanted_subnets import ipv6_range_of, part
from pergola.providers.aws.wanted import Wanted

_BITS: Final = 108
_PLACE: Final = 1


def steps(wanted: Wanted) -> list[Step]:
    """The step that reserves the range, once the worker subnets are there."""
    zones = wanted.config.networks.zones
    created = (names.subnets(zone.name) for zone in zones if not zone.workers_subnet_id)
    return [
        Step(
            name=names.SERVICE_RANGE,
            plan=_plan,
            ensure=_ensure,
            after=(names.VPC, *created),
            skip=None if wanted.ipv6 else "the cluster has no IPv6",
            timeout=LONG_TIMEOUT,
        )
    ]


def worker_subnets(work: Work) -> list[str]:
    """The ids of all worker subnets, in their own order: those that are brought, and ours."""
    brought = (zone.workers_subnet_id for zone in work.wanted.config.networks.zones)
    ours = (name for _, name in keys.in_zones(work.state, keys.SUBNET_WORKERS))
    return sorted({name for name in (*brought, *ours) if name})


def _plan(work: Work) -> Note:
    reserved = work.state.get(keys.SERVICE_CIDR)
    if reserved:
        return Note(Fate.KEEP, reserved)
    return Note(Fate.CREATE, f"a /{_BITS} in a worker subnet")


async def _ensure(work: Work) -> None:
    if work.state.get(keys.SERVICE_CIDR):
        return
    subnet = next(iter(worker_subnets(work)), "")
    wanted = _range_in(work, subnet)
    present = await _reservations(work, subnet)
    if not any(each["Cidr"] == wanted for each in present):
        await once_visible(
            work,
            "CreateSubnetCidrReservation",
            SubnetId=subnet,
            Cidr=wanted,
            ReservationType="explicit",
            TagSpecifications=tags.specification("subnet-cidr-reservation", work.wanted.tags()),
        )
    work.state.created(keys.SERVICE_CIDR, wanted)


def _range_in(work: Work, subnet: str) -> str:
    block = ipv6_range_of(work.snapshot.subnets.get(subnet, {}))
    if block is None:
        raise ExtensionError(
            f"worker subnet {subnet} has no IPv6 range, which a cluster with IPv6 needs; "
            "associate one",
            Code.CONFIGURATION_PROBLEM,
        )
    return part(block, _BITS, _PLACE)


async def _reservations(work: Work, subnet: str) -> list[JsonObject]:
    try:
        return await work.aws.pages(
            "ec2", "GetSubnetCidrReservations", "SubnetIpv6CidrReservations", SubnetId=subnet
        )
    except NotFound:
        return []
