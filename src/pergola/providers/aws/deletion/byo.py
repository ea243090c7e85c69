"""What is taken back from a network that was brought: our own tags (spec 30 §9.3).

Subnets, route tables and the VPC stay, and so do the tags of roles, which other clusters may use.
Things that the user has deleted meanwhile count as done.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from pergola.api.ip_ranges import parse_network
from pergola.api.objects import JsonObject
from pergola.cloud.errors import NotFound, Unauthorized
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import routing
from pergola.providers.aws import state as keys
from pergola.providers.aws.load_balancers import CLUSTER_PREFIX, Role
from pergola.providers.aws.preflight.subnets import named
from pergola.providers.aws.snapshot import tags_of
from pergola.providers.aws.step import Step, Work
from pergola.providers.aws.steps.byo import records
from pergola.providers.aws.tags import as_list
from pergola.providers.aws.wanted import SHARED, Wanted

UNTAG: Final = "remove tags of subnets and route tables"
SERVICE_RANGE: Final = "release service range"
POD_ROUTES: Final = "delete routes to pods that are gone"

_ROLES: Final = frozenset(role.tag for role in Role)

Tags = tuple[tuple[str, str | None], ...]
"""Tags to be removed: by key and value, or by key alone."""


def steps(
    wanted: Wanted, *, after: tuple[str, ...] = (), remove_pod_routes: bool = False
) -> list[Step]:
    """The steps that leave a network that was brought; none if subnets were created.

    Args:
        after: the steps that come before all of these.
        remove_pod_routes: whether routes to pods that lead nowhere are removed from the user's
            route tables; they stay otherwise.
    """
    if not wanted.config.brings_subnets:
        return []
    kept = None if remove_pod_routes else "routes in route tables of the user are left alone"
    return [
        Step(name=POD_ROUTES, plan=_plan_routes, ensure=_delete_routes, after=after, skip=kept),
        Step(name=SERVICE_RANGE, plan=_plan_range, ensure=_release_range, after=after),
        Step(name=UNTAG, plan=_plan_tags, ensure=_untag, after=(*after, POD_ROUTES, SERVICE_RANGE)),
    ]


# Tags


def _things(work: Work) -> list[str]:
    """All on which a tag of ours may be: what the config names, the state knows, records tell.

    Subnets that only the state knows were found by the user's own tags: these stay.
    """
    by_config = [each.id for each in named(work.wanted)]
    by_state = [
        name
        for key in (keys.SUBNET_WORKERS, keys.ROUTE_TABLE)
        for _, name in keys.in_zones(work.state, key)
    ]
    return list(dict.fromkeys([*by_config, *by_state, *records.all_recorded(work.state)]))


def _ours(work: Work, name: str) -> Tags:
    """The tags to be removed from a thing.

    Recorded ones are removed even if they are not to be seen: they may be very new.
    """
    known = records.recorded(work.state, name)
    if known is None:
        thing = work.snapshot.subnets.get(name) or work.snapshot.route_tables.get(name) or {}
        known = records.present(work.wanted, thing)
    cluster = work.wanted.cluster_tag
    return tuple((key, SHARED if key == cluster else None) for key in sorted(known - _ROLES))


def _plan_tags(work: Work) -> Note:
    several = {name: _ours(work, name) for name in _things(work)}
    said = [
        f"{name}: {', '.join(key for key, _ in tags)}" for name, tags in several.items() if tags
    ]
    if said:
        return Note(Fate.DELETE, "; ".join(said))
    return Note(Fate.KEEP, "no tag is ours")


async def _untag(work: Work) -> None:
    alike: dict[tuple[bool, Tags], list[str]] = defaultdict(list)
    for name in _things(work):
        tags = _ours(work, name)
        if tags:
            alike[bool(records.recorded(work.state, name)), tags].append(name)
    for (is_recorded, tags), several in alike.items():
        await _remove(work, several, tags, must=is_recorded)
    for key in list(work.state.under(keys.ZONES)):
        work.state.forget(f"{keys.ZONES}/{key}")


async def _remove(work: Work, several: list[str], tags: Tags, *, must: bool) -> None:
    """Removes tags from things.

    Args:
        must: whether the tags are ours for certain; otherwise nobody is stopped by them.
    """
    try:
        await _delete_tags(work, several, tags)
    except Unauthorized as error:
        if must:
            raise
        work.warnings.append(
            f"tags are left and the credentials may not delete them ({error.code}): "
            f"{_advice(work.wanted.region, several, tags)}"
        )
        return
    for name in several:
        thing = work.snapshot.subnets.get(name) or work.snapshot.route_tables.get(name)
        if thing is not None:
            removed = {key for key, _ in tags}
            thing["Tags"] = as_list({k: v for k, v in tags_of(thing).items() if k not in removed})
        records.forget(work.state, name)


async def _delete_tags(work: Work, several: list[str], tags: Tags) -> None:
    """One call for all; if one of them is gone, AWS refuses, and each is asked for by itself."""
    call = partial(work.aws.call, "ec2", "DeleteTags", Tags=_as_aws(tags))
    try:
        await call(Resources=several)
    except NotFound:
        for name in several if len(several) > 1 else ():
            try:
                await call(Resources=[name])
            except NotFound:
                continue


def _as_aws(tags: Tags) -> list[JsonObject]:
    return [{"Key": key} if value is None else {"Key": key, "Value": value} for key, value in tags]


def _advice(region: str, things: Iterable[str], tags: Tags) -> str:
    pairs = " ".join(f"Key={key}" + (f",Value={value}" if value else "") for key, value in tags)
    return f"aws ec2 delete-tags --region {region} --resources {' '.join(things)} --tags {pairs}"


# The range of Services


def _plan_range(work: Work) -> Note:
    known = work.state.get(keys.SERVICE_CIDR)
    if known is None:
        return Note(Fate.SKIP, "no range is reserved")
    return Note(Fate.DELETE, f"the reservation of {known}")


async def _release_range(work: Work) -> None:
    """The only change to a subnet of the user besides tags (§10.5); it is taken back."""
    known = work.state.get(keys.SERVICE_CIDR)
    if known is None:
        return
    for _, subnet in keys.in_zones(work.state, keys.SUBNET_WORKERS):
        for reservation in await _reservations(work, subnet):
            same = parse_network(reservation["Cidr"]) == parse_network(known)
            if same and _is_unused(work, subnet, reservation):
                await _release(work, reservation["SubnetCidrReservationId"])
    work.state.forget(keys.SERVICE_CIDR)


async def _reservations(work: Work, subnet: str) -> list[JsonObject]:
    try:
        answer = await work.aws.call("ec2", "GetSubnetCidrReservations", SubnetId=subnet)
    except NotFound:
        return []
    found: list[JsonObject] = answer.get("SubnetIpv6CidrReservations") or []
    return found


async def _release(work: Work, reservation: str) -> None:
    try:
        await work.aws.call(
            "ec2", "DeleteSubnetCidrReservation", SubnetCidrReservationId=reservation
        )
    except NotFound:
        return


def _is_unused(work: Work, subnet: str, reservation: JsonObject) -> bool:
    """Whether no other cluster has its Services in a reservation; clusters in a subnet share it.

    Where worker subnets have no tags, nothing tells who else is in them but who reserved it.
    """
    if _others(work.wanted, work.snapshot.subnets.get(subnet, {})):
        return False
    is_ours = work.wanted.cluster_tag in tags_of(reservation)
    return work.wanted.tag_worker_subnets or is_ours or not _others(work.wanted, reservation)


def _others(wanted: Wanted, thing: JsonObject) -> set[str]:
    """The tags of other clusters."""
    return {
        key
        for key in tags_of(thing)
        if key.startswith(CLUSTER_PREFIX) and key != wanted.cluster_tag
    }


# Routes to pods


def _dead(work: Work) -> Iterator[tuple[str, str]]:
    """Route tables of the worker subnets with the destinations that lead to nodes that are gone."""
    for name in dict.fromkeys(name for _, name in keys.in_zones(work.state, keys.ROUTE_TABLE)):
        table = work.snapshot.route_tables.get(name, {})
        for destination in routing.dead_pod_routes(table, work.wanted.pod_ranges):
            yield name, destination


def _plan_routes(work: Work) -> Note:
    dead = [f"{name}: {destination}" for name, destination in _dead(work)]
    return Note(Fate.DELETE, "; ".join(dead)) if dead else Note(Fate.KEEP, "there are none")


async def _delete_routes(work: Work) -> None:
    for table, destination in _dead(work):
        field = "DestinationIpv6CidrBlock" if ":" in destination else "DestinationCidrBlock"
        try:
            await work.aws.call("ec2", "DeleteRoute", RouteTableId=table, **{field: destination})
        except NotFound:
            continue
