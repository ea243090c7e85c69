"""The private route table of a zone, for nodes and internal load balancers (spec 30 §3.5)."""

from functools import partial

from pergola.providers.aws import state as keys
from pergola.providers.aws.config import Zone
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.adoption import create_or_keep, known, refresh
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.kinds import ROUTE_TABLE
from pergola.providers.aws.resources.main_route_table import delete_table
from pergola.providers.aws.resources.ours import Ours, vpc_of
from pergola.providers.aws.resources.routes import (
    EGRESS_ONLY_GATEWAY,
    EVERYWHERE,
    EVERYWHERE_IPV6,
    IPV4_IN_IPV6,
    NAT_GATEWAY,
    Route,
    missing_routes,
    write_route,
)
from pergola.providers.aws.resources.step import Step, Work


def steps(desired: Desired, zone: Zone) -> list[Step]:
    """Return the step for the table, and the one for its routes, which must wait for NAT."""
    step = Step(
        name=names.route_table(zone.name),
        observe=partial(refresh, ours=private_table(zone.name)),
        decide=partial(_decide_about_table, zone=zone),
        after=(names.VPC, names.REMOVED_ZONES),
    )
    leads = zone.public is not None or desired.ipv6
    routes = Step(
        name=names.routes(zone.name),
        decide=partial(_decide_about_routes, zone=zone),
        after=(names.route_table(zone.name), names.EGRESS_ONLY_GATEWAY, names.NAT_GATEWAYS),
        skip=None if leads else "the zone has no public subnet, so there is no NAT to lead to",
    )
    return [step, routes]


def private_table(zone: str) -> Ours:
    """Return the private table of a zone."""
    key = keys.zone_key(zone, keys.ROUTE_TABLE)
    return Ours(kind=ROUTE_TABLE, key=key, suffix=f"private-{zone}")


def _decide_about_table(work: Work, zone: Zone) -> Decision:
    ours, new = private_table(zone.name), f"private, of {zone.name}"
    return create_or_keep(work, ours, new, "CreateRouteTable", VpcId=vpc_of(work))


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


def _decide_about_routes(work: Work, zone: Zone) -> Decision:
    name, routes = known(work, private_table(zone.name)), _routes(work, zone)
    missing = missing_routes(ROUTE_TABLE.one(work.snapshot, name), routes)
    if not missing:
        return Decision.keep(", ".join(route.to for route in routes))
    said = ", ".join(map(str, missing))
    if name is None:
        return Decision.creation(said)
    return Decision.change(said, *(partial(write_route, work, name, route) for route in missing))


def delete_name(zone: str) -> str:
    """Return the name of a zone's step."""
    return f"delete route table in {zone}"


def delete_step(zone: str, after: tuple[str, ...]) -> Step:
    """Return the step that deletes the private table of a zone."""
    return delete_table(delete_name(zone), private_table(zone), after)
