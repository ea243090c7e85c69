"""The route table of public subnets, which leads to the internet gateway.

It is not the main table that AWS creates with a VPC.
"""

from dataclasses import replace
from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.adoption import (
    create_or_keep,
    known,
    refresh,
    tag_changes,
)
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.kinds import ROUTE_TABLE
from pergola.providers.aws.resources.ours import Ours, in_vpc, vpc_of
from pergola.providers.aws.resources.removal import deletion_step_of
from pergola.providers.aws.resources.routes import (
    EVERYWHERE,
    EVERYWHERE_IPV6,
    INTERNET_GATEWAY,
    Route,
    missing_routes,
    write_route,
)
from pergola.providers.aws.resources.step import Step, Work

DELETE: Final = "delete main route table"
_OURS: Final = Ours(kind=ROUTE_TABLE, key=keys.MAIN_ROUTE_TABLE)


def steps(desired: Desired) -> list[Step]:
    """Return the step for the table and its routes; skipped if nothing is public."""
    private = desired.config.byo_vpc and not desired.config.has_public_zone
    return [
        Step(
            name=names.MAIN_ROUTE_TABLE,
            observe=partial(refresh, ours=_OURS),
            decide=_decide,
            after=(names.VPC, names.INTERNET_GATEWAY),
            skip="no zone has a public subnet" if private else None,
        )
    ]


def _routes(work: Work) -> list[Route]:
    gateway = work.state.get(keys.INTERNET_GATEWAY)
    routes = [Route(EVERYWHERE, INTERNET_GATEWAY, gateway)]
    if work.desired.needs_ipv6_block:
        routes.append(Route(EVERYWHERE_IPV6, INTERNET_GATEWAY, gateway))
    return routes


def _decide(work: Work) -> Decision:
    name = known(work, _OURS)
    missing = missing_routes(ROUTE_TABLE.one(work.snapshot, name), _routes(work))
    if name is None:
        new = ", ".join(map(str, missing))
        return create_or_keep(work, _OURS, new, "CreateRouteTable", VpcId=vpc_of(work))
    changes = tag_changes(work, _OURS, name)
    routes = {str(route): partial(write_route, work, name, route) for route in missing}
    return Decision.change_or_keep(name, routes | changes, {_OURS.key: name})


def delete_step(after: tuple[str, ...], skip: str | None) -> Step:
    """Return the step that deletes the table of public subnets."""
    return delete_table(DELETE, _OURS, after, skip)


def delete_table(name: str, ours: Ours, after: tuple[str, ...], skip: str | None = None) -> Step:
    """Return the step that deletes a route table.

    It comes after the subnets: AWS removes an association together with its subnet, so nothing
    needs to be disassociated.
    """
    return deletion_step_of(name, replace(ours, accept=_is_not_main), after=after, skip=skip)


def _is_not_main(work: Work, table: JsonObject) -> bool:
    """Accept all tables but the main one of the VPC, which is deleted with the VPC."""
    is_main = any(each.get("Main") for each in table.get("Associations") or ())
    return in_vpc(work, table) and not is_main
