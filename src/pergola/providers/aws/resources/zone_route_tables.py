"""The private route table of a zone, for nodes and internal load balancers (spec 30 §3.5)."""

from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.config import Zone
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.adoption import find, foreseen, known
from pergola.providers.aws.resources.kinds import ROUTE_TABLE
from pergola.providers.aws.resources.main_route_table import create_table, delete_table
from pergola.providers.aws.resources.ours import Ours
from pergola.providers.aws.resources.routes import (
    EGRESS_ONLY_GATEWAY,
    EVERYWHERE,
    EVERYWHERE_IPV6,
    IPV4_IN_IPV6,
    NAT_GATEWAY,
    Route,
    changes,
    ensure_routes,
)
from pergola.providers.aws.resources.step import Step, Work


def steps(desired: Desired, zone: Zone) -> list[Step]:
    """Return the step for the table, and the one for its routes, which must wait for NAT."""
    step = Step(
        name=names.route_table(zone.name),
        plan=lambda work: _plan_table(work, zone),
        ensure=lambda work: _ensure_table(work, zone),
        after=(names.VPC, names.REMOVED_ZONES),
    )
    leads = zone.public is not None or desired.ipv6
    routes = Step(
        name=names.routes(zone.name),
        plan=lambda work: _plan_routes(work, zone),
        ensure=lambda work: _ensure_routes(work, zone),
        after=(names.route_table(zone.name), names.EGRESS_ONLY_GATEWAY, names.NAT_GATEWAYS),
        skip=None if leads else "the zone has no public subnet, so there is no NAT to lead to",
    )
    return [step, routes]


def private_table(zone: str) -> Ours:
    """Return the private table of a zone."""
    key = keys.zone_key(zone, keys.ROUTE_TABLE)
    return Ours(kind=ROUTE_TABLE, key=key, suffix=f"private-{zone}")


def _plan_table(work: Work, zone: Zone) -> Note:
    return foreseen(work, private_table(zone.name), new=f"private, of {zone.name}")


async def _ensure_table(work: Work, zone: Zone) -> None:
    if not await find(work, private_table(zone.name)):
        await create_table(work, private_table(zone.name))


def _routes(work: Work, zone: Zone) -> list[Route]:
    nat = work.state.get(keys.zone_key(zone.name, keys.NAT_GATEWAY))
    routes: list[Route] = []
    if zone.public:
        routes.append(Route(EVERYWHERE, NAT_GATEWAY, nat))
    if work.desired.ipv6:
        gateway = work.state.get(keys.EGRESS_ONLY_GATEWAY)
        routes.append(Route(EVERYWHERE_IPV6, EGRESS_ONLY_GATEWAY, gateway))
        if zone.public:
            routes.append(Route(IPV4_IN_IPV6, NAT_GATEWAY, nat))
    return routes


def _plan_routes(work: Work, zone: Zone) -> Note:
    name = known(work, private_table(zone.name))
    different = changes(ROUTE_TABLE.one(work.snapshot, name), _routes(work, zone))
    if different:
        return Note(Fate.CHANGE if name else Fate.CREATE, ", ".join(different))
    return Note(Fate.KEEP, ", ".join(route.to for route in _routes(work, zone)))


async def _ensure_routes(work: Work, zone: Zone) -> None:
    name = work.state.get(private_table(zone.name).key) or ""
    await ensure_routes(work, work.snapshot.route_tables[name], _routes(work, zone))


def delete_name(zone: str) -> str:
    """Return the name of a zone's step."""
    return f"delete route table in {zone}"


def delete_step(zone: str, after: tuple[str, ...]) -> Step:
    """Return the step that deletes the private table of a zone."""
    return delete_table(delete_name(zone), private_table(zone), after)
