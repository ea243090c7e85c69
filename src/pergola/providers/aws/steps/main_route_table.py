"""The table of public subnets: it leads to the internet gateway. It is not AWS's main table."""

from pergola.api.objects import JsonObject
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws import tags
from pergola.providers.aws.step import Step, Work
from pergola.providers.aws.steps import names
from pergola.providers.aws.steps.finding import (
    ROUTE_TABLE,
    find,
    foreseen,
    in_vpc,
    known,
    remember,
)
from pergola.providers.aws.steps.routes import (
    EVERYWHERE,
    EVERYWHERE_IPV6,
    INTERNET_GATEWAY,
    Route,
    changes,
    ensure_routes,
)
from pergola.providers.aws.steps.waiting import once_visible
from pergola.providers.aws.wanted import Wanted


def steps(wanted: Wanted) -> list[Step]:
    """The step for the table and its routes; none is needed where nothing is public."""
    private = wanted.config.brings_vpc and not wanted.config.has_public_zone
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
    """A new route table in the cluster's VPC, its id in the state.

    Raises:
        CloudError: AWS refused.
    """
    answer = await once_visible(
        work,
        "CreateRouteTable",
        VpcId=work.state.get(keys.VPC),
        TagSpecifications=tags.specification(ROUTE_TABLE.resource, work.wanted.tags(suffix)),
    )
    table: JsonObject = answer["RouteTable"]
    remember(work, ROUTE_TABLE, key, table)
    return table


def _routes(work: Work) -> list[Route]:
    gateway = work.state.get(keys.INTERNET_GATEWAY)
    routes = [Route(EVERYWHERE, INTERNET_GATEWAY, gateway)]
    if work.wanted.needs_ipv6_block:
        routes.append(Route(EVERYWHERE_IPV6, INTERNET_GATEWAY, gateway))
    return routes


def _plan(work: Work) -> Note:
    accept = in_vpc(work)
    name = known(work, ROUTE_TABLE, keys.MAIN_ROUTE_TABLE, accept)
    different = changes(ROUTE_TABLE.named(work, name), _routes(work))
    if name and different:
        return Note(Fate.CHANGE, f"{name}: {', '.join(different)}")
    new = ", ".join(different)
    return foreseen(work, ROUTE_TABLE, keys.MAIN_ROUTE_TABLE, accept, new=new)


async def _ensure(work: Work) -> None:
    table = await find(work, ROUTE_TABLE, keys.MAIN_ROUTE_TABLE, in_vpc(work))
    if table is None:
        table = await create_table(work, keys.MAIN_ROUTE_TABLE, "")
    await ensure_routes(work, table, _routes(work))
