"""The IPv6 range of Services: reserved in a worker subnet, then never changed (spec 30 §10.5).

Apart from tags, this is the only change to a user-provided subnet. Clusters that share a subnet
also share the reservation: addresses of Services never leave their cluster.
"""

from functools import partial
from typing import Final

from pergola.api.ip_ranges import parse_network
from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.cloud.errors import NotFound
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.load_balancer_roles import CLUSTER_PREFIX
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources import tags
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.step import LONG_TIMEOUT, Step, Work
from pergola.providers.aws.resources.subnets.ipv6_ranges import ipv6_range_of, part
from pergola.providers.aws.resources.waiting import once_visible

_BITS: Final = 108
_PLACE: Final = 1
RELEASE: Final = "release service range"


def steps(desired: Desired) -> list[Step]:
    """Return the step that reserves the range, once the worker subnets exist."""
    zones = desired.config.networks.zones
    created = (names.subnets(zone.name) for zone in zones if not zone.workers_subnet_id)
    return [
        Step(
            name=names.SERVICE_RANGE,
            decide=_decide,
            after=(names.VPC, *created),
            skip=None if desired.ipv6 else "the cluster has no IPv6",
            timeout=LONG_TIMEOUT,
        )
    ]


def release_step(after: tuple[str, ...]) -> Step:
    """Return the step that releases the range in user-provided subnets."""
    return Step(name=RELEASE, decide=_decide_to_release, after=after)


def worker_subnets(work: Work) -> list[str]:
    """Return the ids of all worker subnets, sorted, both user-provided and managed."""
    byo = (zone.workers_subnet_id for zone in work.desired.config.networks.zones)
    ours = (name for _, name in keys.in_zones(work.state, keys.SUBNET_WORKERS))
    return sorted({name for name in (*byo, *ours) if name})


def _decide(work: Work) -> Decision:
    reserved = work.state.get(keys.SERVICE_CIDR)
    if reserved:
        return Decision.keep(reserved)
    return Decision.creation(f"a /{_BITS} in a worker subnet", partial(_reserve, work))


async def _reserve(work: Work) -> None:
    """Record the range that is reserved in any worker subnet, or reserve it in the first one.

    The state may be lost after a subnet was added whose id precedes that of the subnet with the
    reservation; another range would be a second one for Services that already have addresses.
    """
    ranges = _ranges(work)
    for subnet, desired in ranges.items():
        present = [parse_network(each["Cidr"]) for each in await _reservations(work, subnet)]
        if parse_network(desired) in present:
            work.state.created(keys.SERVICE_CIDR, desired)
            return
    subnet, desired = next(iter(ranges.items()))
    await once_visible(
        work,
        "CreateSubnetCidrReservation",
        SubnetId=subnet,
        Cidr=desired,
        ReservationType="explicit",
        TagSpecifications=tags.specification("subnet-cidr-reservation", work.desired.tags()),
    )
    work.state.created(keys.SERVICE_CIDR, desired)


def _ranges(work: Work) -> dict[str, str]:
    """Return the range of Services in each worker subnet that has an IPv6 range."""
    subnets = worker_subnets(work)
    blocks = {name: ipv6_range_of(work.snapshot.subnets.get(name, {})) for name in subnets}
    ranges = {name: part(block, _BITS, _PLACE) for name, block in blocks.items() if block}
    if not ranges:
        raise ExtensionError(
            f"no worker subnet ({', '.join(subnets)}) has an IPv6 range, which a cluster with "
            "IPv6 needs; associate one",
            Code.CONFIGURATION_PROBLEM,
        )
    return ranges


async def _reservations(work: Work, subnet: str) -> list[JsonObject]:
    try:
        return await work.aws.pages(
            "ec2", "GetSubnetCidrReservations", "SubnetIpv6CidrReservations", SubnetId=subnet
        )
    except NotFound:
        return []


def _decide_to_release(work: Work) -> Decision:
    known = work.state.get(keys.SERVICE_CIDR)
    if known is None:
        return Decision.skip("no range is reserved")
    release = partial(_release, work, known)
    return Decision.deletion(f"the reservation of {known}", release, forget=(keys.SERVICE_CIDR,))


async def _release(work: Work, known: str) -> None:
    """Release the reservation, the only change to a user-provided subnet besides tags (§10.5)."""
    for _, subnet in keys.in_zones(work.state, keys.SUBNET_WORKERS):
        for reservation in await _reservations(work, subnet):
            same = parse_network(reservation["Cidr"]) == parse_network(known)
            if same and _is_unused(work, subnet, reservation):
                await _delete_reservation(work, reservation["SubnetCidrReservationId"])


async def _delete_reservation(work: Work, reservation: str) -> None:
    try:
        await work.aws.call(
            "ec2", "DeleteSubnetCidrReservation", SubnetCidrReservationId=reservation
        )
    except NotFound:
        return


def _is_unused(work: Work, subnet: str, reservation: JsonObject) -> bool:
    """Return whether a cluster made a reservation that no other cluster uses any more.

    Clusters in a subnet share a reservation; if worker subnets have no tags, only its own tags
    reveal other clusters. One without the tag of any cluster is the user's.
    """
    if _others(work.desired, work.snapshot.subnets.get(subnet, {})):
        return False
    is_ours = work.desired.cluster_tag in tags_of(reservation)
    is_of_another = bool(_others(work.desired, reservation))
    return is_ours or (is_of_another and work.desired.tag_worker_subnets)


def _others(desired: Desired, thing: JsonObject) -> set[str]:
    """Return the tags of other clusters."""
    return {
        key
        for key in tags_of(thing)
        if key.startswith(CLUSTER_PREFIX) and key != desired.cluster_tag
    }
