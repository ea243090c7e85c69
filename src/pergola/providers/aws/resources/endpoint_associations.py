"""Route tables of gateway endpoints: one request for each endpoint (spec 30 §3.3)."""

from functools import partial

from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.decision import Decision
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
            decide=_decide,
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


def _decide(work: Work) -> Decision:
    services = work.desired.config.networks.vpc.gateway_endpoints
    endpoints = {service: known_endpoint(work, service) for service in services}
    missing = {
        service: tables
        for service, name in endpoints.items()
        if (tables := _missing_tables(work, name))
    }
    if not missing:
        return Decision.keep("all tables are associated")
    said = "; ".join(f"{service}: {', '.join(tables)}" for service, tables in missing.items())
    calls = (
        partial(_associate, work, name, tables)
        for service, tables in missing.items()
        if (name := endpoints[service])
    )
    return Decision.change(said, *calls)


async def _associate(work: Work, name: str, tables: list[str]) -> None:
    await once_visible(work, "ModifyVpcEndpoint", VpcEndpointId=name, AddRouteTableIds=tables)
    endpoint = work.snapshot.endpoints[name]
    endpoint["RouteTableIds"] = [*(endpoint.get("RouteTableIds") or []), *tables]


def _missing_tables(work: Work, name: str | None) -> list[str]:
    """Return zone tables that an endpoint lacks, according to itself: routes are unreliable."""
    endpoint = ENDPOINT.one(work.snapshot, name) or {}
    present = endpoint.get("RouteTableIds") or []
    zones = (zone.name for zone in work.desired.config.networks.zones)
    tables = (work.state.get(keys.zone_key(zone, keys.ROUTE_TABLE)) for zone in zones)
    return [table for table in tables if table and table not in present]
