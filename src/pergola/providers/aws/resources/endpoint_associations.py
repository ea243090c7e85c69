"""Route tables of gateway endpoints: one request for each endpoint (spec 30 §3.3)."""

from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.endpoints import BYO, known_endpoint
from pergola.providers.aws.resources.kinds import ENDPOINT
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.waiting import once_visible


def steps(desired: Desired) -> list[Step]:
    """Return the step that associates the zones' route tables, with one request per endpoint."""
    zones = desired.config.networks.zones
    return [
        Step(
            name=names.ENDPOINT_ASSOCIATIONS,
            plan=_plan,
            ensure=_ensure,
            after=(
                names.GATEWAY_ENDPOINTS,
                *(names.route_table(zone.name) for zone in zones if zone.workers_subnet_id is None),
            ),
            skip=_why_skipped(desired),
        )
    ]


def _why_skipped(desired: Desired) -> str | None:
    if desired.config.byo_subnets:
        return BYO
    return None if desired.config.networks.vpc.gateway_endpoints else "no gateway endpoints"


def _plan(work: Work) -> Note:
    missing = {
        service: tables
        for service in work.desired.config.networks.vpc.gateway_endpoints
        if (tables := _missing_tables(work, known_endpoint(work, service)))
    }
    if not missing:
        return Note(Fate.KEEP, "all tables are associated")
    return Note(Fate.CHANGE, "; ".join(f"{each}: {', '.join(t)}" for each, t in missing.items()))


async def _ensure(work: Work) -> None:
    for service in work.desired.config.networks.vpc.gateway_endpoints:
        name = known_endpoint(work, service)
        missing = _missing_tables(work, name)
        if name is None or not missing:
            continue
        await once_visible(work, "ModifyVpcEndpoint", VpcEndpointId=name, AddRouteTableIds=missing)
        endpoint = work.snapshot.endpoints[name]
        endpoint["RouteTableIds"] = [*(endpoint.get("RouteTableIds") or []), *missing]


def _missing_tables(work: Work, name: str | None) -> list[str]:
    """Return zone tables that an endpoint lacks, according to itself: routes are unreliable."""
    endpoint = ENDPOINT.one(work.snapshot, name) or {}
    present = endpoint.get("RouteTableIds") or []
    zones = (zone.name for zone in work.desired.config.networks.zones)
    tables = (work.state.get(keys.zone_key(zone, keys.ROUTE_TABLE)) for zone in zones)
    return [table for table in tables if table and table not in present]
