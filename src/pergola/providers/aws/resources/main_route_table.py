"""The route table of public subnets, which leads to the internet gateway.

It is not the main table that AWS creates with a VPC.
"""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources import tags
from pergola.providers.aws.resources.adoption import find, foreseen, in_vpc, known, remember
from pergola.providers.aws.resources.kinds import ROUTE_TABLE
from pergola.providers.aws.resources.removal import (
    forget,
    in_cluster_vpc,
    note,
    remove,
    to_delete,
)
from pergola.providers.aws.resources.routes import (
    EVERYWHERE,
    EVERYWHERE_IPV6,
    INTERNET_GATEWAY,
    Route,
    changes,
    ensure_routes,
)
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.waiting import once_visible

DELETE: Final = "delete main route table"


def steps(desired: Desired) -> list[Step]:
    """Return the step for the table and its routes; skipped if nothing is public."""
    private = desired.config.byo_vpc and not desired.config.has_public_zone
    return [
        Step(
            name=names.MAIN_ROUTE_TABLE,
            plan=_plan,
            ensure=_ensure,
            after=(names.VPC, names.INTERNET_GATEWAY),
            skip="no zone has a public subnet" if private else None,
        )
    ]


async def create_table(work: Work, key: str, suffix: str) -> JsonObject:
    """Create a route table in the cluster's VPC, and record its id.

    Raises:
        CloudError: AWS refused.
    """
    answer = await once_visible(
        work,
        "CreateRouteTable",
        VpcId=work.state.get(keys.VPC),
        TagSpecifications=tags.specification(ROUTE_TABLE.type, work.desired.tags(suffix)),
    )
    table: JsonObject = answer["RouteTable"]
    remember(work, ROUTE_TABLE, key, table)
    return table


def _routes(work: Work) -> list[Route]:
    gateway = work.state.get(keys.INTERNET_GATEWAY)
    routes = [Route(EVERYWHERE, INTERNET_GATEWAY, gateway)]
    if work.desired.needs_ipv6_block:
        routes.append(Route(EVERYWHERE_IPV6, INTERNET_GATEWAY, gateway))
    return routes


def _plan(work: Work) -> Note:
    accept = in_vpc(work)
    name = known(work, ROUTE_TABLE, keys.MAIN_ROUTE_TABLE, accept)
    different = changes(ROUTE_TABLE.one(work.snapshot, name), _routes(work))
    if name and different:
        return Note(Fate.CHANGE, f"{name}: {', '.join(different)}")
    new = ", ".join(different)
    return foreseen(work, ROUTE_TABLE, keys.MAIN_ROUTE_TABLE, accept, new=new)


async def _ensure(work: Work) -> None:
    table = await find(work, ROUTE_TABLE, keys.MAIN_ROUTE_TABLE, in_vpc(work))
    if table is None:
        table = await create_table(work, keys.MAIN_ROUTE_TABLE, "")
    await ensure_routes(work, table, _routes(work))


def delete_step(after: tuple[str, ...], skip: str | None) -> Step:
    """Return the step that deletes the table of public subnets."""
    return table_deletion(DELETE, keys.MAIN_ROUTE_TABLE, "", after, skip)


def table_deletion(
    name: str, key: str, suffix: str, after: tuple[str, ...], skip: str | None
) -> Step:
    """Return the step that deletes one managed route table.

    It comes after the subnets: AWS removes an association together with its subnet, so nothing
    needs to be disassociated.

    Args:
        name: of the step.
        key: of the table in the state.
        suffix: of the table's name.
    """

    async def ensure(work: Work) -> None:
        for table in _to_delete(work, key, suffix):
            await remove(work, "DeleteRouteTable", RouteTableId=table)
            work.snapshot.route_tables.pop(table, None)
        forget(work, key)

    def plan(work: Work) -> Note:
        return note(_to_delete(work, key, suffix))

    return Step(name=name, plan=plan, ensure=ensure, after=after, skip=skip)


def _to_delete(work: Work, key: str, suffix: str) -> list[str]:
    is_inside, names = in_cluster_vpc(work), (work.desired.name(suffix),)

    def is_it(table: JsonObject) -> bool:
        return is_inside(table) and not _is_main(table)

    return to_delete(work, work.snapshot.route_tables, (work.state.get(key),), names, is_it)


def _is_main(table: JsonObject) -> bool:
    """Return whether it is the main table of the VPC, which is deleted with the VPC."""
    return any(each.get("Main") for each in table.get("Associations") or ())
