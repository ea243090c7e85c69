"""The route tables of worker subnets, into which pod routes are written (spec 30 §7.4).

The route controller finds the tables by the cluster's tag. With an overlay, or with IPv6 alone,
there are no pod routes.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.flow import State
from pergola.providers.aws import routing
from pergola.providers.aws import state as keys
from pergola.providers.aws.byo import records
from pergola.providers.aws.desired import SHARED, Desired
from pergola.providers.aws.resources import byo_step_names as names
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.tags import as_list, remove_tag
from pergola.providers.aws.snapshot import Snapshot

TABLE: Final = "rtb-"


def needs_tables(desired: Desired) -> bool:
    """Return whether pod routes are written into route tables."""
    return not desired.overlay and desired.ipv4


def by_zone(desired: Desired, snapshot: Snapshot) -> Iterator[tuple[str, JsonObject]]:
    """Yield zones with the route table of their worker subnet; none without pod routes."""
    for zone in desired.config.networks.zones if needs_tables(desired) else ():
        subnet = zone.workers_subnet_id
        table = routing.table_of(snapshot, subnet) if subnet else None
        if table is not None:
            yield zone.name, table


def of_workers(desired: Desired, snapshot: Snapshot) -> dict[str, JsonObject]:
    """Return the route tables that need the cluster's tag, by their ids."""
    return {str(table["RouteTableId"]): table for _, table in by_zone(desired, snapshot)}


def to_record(work: Work) -> dict[str, str]:
    """Return what the state gets about the route table of each zone, if it is needed."""
    return {
        keys.zone_key(zone, keys.ROUTE_TABLE): table["RouteTableId"]
        for zone, table in by_zone(work.desired, work.snapshot)
    }


def forget(state: State, table: str) -> None:
    """Drop a route table from every zone."""
    for zone, known in list(keys.in_zones(state, keys.ROUTE_TABLE)):
        if known == table:
            state.forget(keys.zone_key(zone, keys.ROUTE_TABLE))


def _stale(work: Work) -> list[str]:
    """Return the route tables that we tagged and that are no longer used."""
    used = of_workers(work.desired, work.snapshot)
    ours = records.all_recorded(work.state)
    return sorted(name for name in ours if name.startswith(TABLE) and name not in used)


def _decide(work: Work) -> Decision:
    stale = _stale(work)
    if not stale:
        return Decision.skip("no route table has a tag that is not needed")
    said = f"remove {work.desired.cluster_tag} from {', '.join(stale)}"
    return Decision.change(said, *(partial(_untag, work, table) for table in stale))


async def _untag(work: Work, table: str) -> None:
    key, known = work.desired.cluster_tag, work.snapshot.route_tables.get(table)
    await remove_tag(work, [table], key, SHARED)
    if known is not None:
        known["Tags"] = as_list({k: v for k, v in tags_of(known).items() if k != key})
    records.forget(work.state, table)
    forget(work.state, table)


STEP: Final = Step(name=names.UNTAG, decide=_decide, after=(names.READ,))
