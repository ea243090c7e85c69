"""Deletion of pod routes of deleted nodes from user-provided route tables (spec 30 §7.2).

Only if the operator allows it: otherwise, routes in the user's route tables are not touched.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from pergola.api.ip_ranges import parse_network
from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import BLACKHOLE, destination_of
from pergola.cloud.errors import NotFound
from pergola.providers.aws import state as keys
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.step import Step, Work

DELETE: Final = "delete routes to pods that are gone"


def delete_step(after: tuple[str, ...], *, allowed: bool) -> Step:
    """Return the step that deletes dead pod routes, skipped unless the operator allows it."""
    kept = None if allowed else "routes in the user's route tables are not touched"
    return Step(name=DELETE, decide=_decide, after=after, skip=kept)


def _dead(work: Work) -> Iterator[tuple[str, str]]:
    """Yield worker route tables with the destinations of routes to deleted nodes."""
    for name in dict.fromkeys(name for _, name in keys.in_zones(work.state, keys.ROUTE_TABLE)):
        table = work.snapshot.route_tables.get(name, {})
        for destination in dead_pod_routes(table, work.desired.pod_ranges):
            yield name, destination


def _decide(work: Work) -> Decision:
    dead = list(_dead(work))
    if not dead:
        return Decision.keep("there are none")
    said = "; ".join(f"{table}: {destination}" for table, destination in dead)
    return Decision.deletion(said, *(partial(_delete, work, *each) for each in dead))


async def _delete(work: Work, table: str, destination: str) -> None:
    field = "DestinationIpv6CidrBlock" if ":" in destination else "DestinationCidrBlock"
    with suppress(NotFound):
        await work.aws.call("ec2", "DeleteRoute", RouteTableId=table, **{field: destination})


def dead_pod_routes(table: JsonObject, pod_ranges: Iterable[str]) -> Iterator[str]:
    """Yield the destinations of pod routes to deleted nodes.

    Args:
        pod_ranges: the ranges of all pods of the cluster, as CIDRs.
    """
    ranges = [parse_network(cidr) for cidr in pod_ranges]
    for route in table.get("Routes") or ():
        destination = destination_of(route)
        if route.get("State") != BLACKHOLE or not destination:
            continue
        network = parse_network(destination)
        # Only ranges of the same family can be supernets; for others, subnet_of would raise.
        if any(
            network.version == pods.version
            and network.prefixlen >= pods.prefixlen
            and network.network_address in pods
            for pods in ranges
        ):
            yield destination
