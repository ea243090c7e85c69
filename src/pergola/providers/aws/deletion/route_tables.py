"""Removes route tables; those of users stay (spec 30 §9.1, §9.2).

They come after the subnets: AWS ends an association together with its subnet, so that nothing has
to be disassociated.
"""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.flow.picture import Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.deletion.removing import (
    condemned,
    forget,
    in_vpc,
    named,
    note,
    remove,
)
from pergola.providers.aws.step import Step, Work

MAIN: Final = "delete main route table"


def name(zone: str) -> str:
    """The step of a zone."""
    return f"delete route table in {zone}"


def main_step(after: tuple[str, ...], skip: str | None) -> Step:
    """The step of the table of public subnets."""
    return _step(MAIN, keys.MAIN_ROUTE_TABLE, "", after, skip)


def zone_step(zone: str, after: tuple[str, ...]) -> Step:
    """The step of the private table of a zone."""
    key = keys.zone_key(zone, keys.ROUTE_TABLE)
    return _step(name(zone), key, f"private-{zone}", after, None)


def _step(name: str, key: str, suffix: str, after: tuple[str, ...], skip: str | None) -> Step:
    async def ensure(work: Work) -> None:
        for table in _tables(work, key, suffix):
            await remove(work, "DeleteRouteTable", RouteTableId=table)
            work.snapshot.route_tables.pop(table, None)
        forget(work, key)

    def plan(work: Work) -> Note:
        return note(_tables(work, key, suffix))

    return Step(name=name, plan=plan, ensure=ensure, after=after, skip=skip)


def _tables(work: Work, key: str, suffix: str) -> list[str]:
    is_inside, has_name = in_vpc(work), named(work, suffix)

    def is_it(table: JsonObject) -> bool:
        return is_inside(table) and has_name(table) and not _is_main(table)

    return condemned(work, work.snapshot.route_tables, (work.state.get(key),), is_it)


def _is_main(table: JsonObject) -> bool:
    """Whether it is the one that the VPC was born with, which goes with it."""
    return any(each.get("Main") for each in table.get("Associations") or ())
