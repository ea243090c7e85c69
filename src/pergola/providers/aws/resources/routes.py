"""Routes in managed tables: compared by value, replaced only if their targets differ (§3.5).

Routes to other destinations are never touched: pod routes, those of endpoints, peerings.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject
from pergola.cloud.errors import AlreadyExists
from pergola.providers.aws.resources.step import Work
from pergola.providers.aws.resources.waiting import once_visible

EVERYWHERE: Final = "0.0.0.0/0"
EVERYWHERE_IPV6: Final = "::/0"
IPV4_IN_IPV6: Final = "64:ff9b::/96"
"""The addresses through which nodes without IPv4 reach the IPv4 internet."""
INTERNET_GATEWAY: Final = "GatewayId"
NAT_GATEWAY: Final = "NatGatewayId"
EGRESS_ONLY_GATEWAY: Final = "EgressOnlyInternetGatewayId"


class Route(NamedTuple):
    """A route of a table.

    Attributes:
        to: a range; IPv6 if it contains a colon.
        target: AWS's field that names the gateway.
        gateway: its id; None while there is none.
    """

    to: str
    target: str
    gateway: str | None

    @property
    def destination(self) -> dict[str, str]:
        """The destination in AWS's format."""
        field = "DestinationIpv6CidrBlock" if ":" in self.to else "DestinationCidrBlock"
        return {field: self.to}

    def __str__(self) -> str:
        return f"{self.to} to {self.gateway or 'what is created'}"


def missing_routes(table: JsonObject | None, routes: Iterable[Route]) -> list[Route]:
    """Return the routes that a table lacks, or that lead elsewhere."""
    present = (table or {}).get("Routes") or []
    return [route for route in routes if not _leads(_same_destination(present, route), route)]


async def write_route(work: Work, table: str, route: Route) -> None:
    """Create a route, or replace one to the same destination.

    Raises:
        CloudError: AWS refused.
    """
    present: list[JsonObject] = work.snapshot.route_tables[table].setdefault("Routes", [])
    found = _same_destination(present, route)
    await _write(work, table, route, replace=found is not None)
    if found is not None:
        present.remove(found)
    present.append({**route.destination, route.target: route.gateway, "State": "active"})


def _same_destination(present: list[JsonObject], route: Route) -> JsonObject | None:
    destination = route.destination.items()
    return next((each for each in present if destination <= each.items()), None)


def _leads(found: JsonObject | None, route: Route) -> bool:
    return (
        found is not None and route.gateway is not None and found.get(route.target) == route.gateway
    )


async def _write(work: Work, table: str, route: Route, *, replace: bool) -> None:
    parameters = {"RouteTableId": table, **route.destination, route.target: route.gateway}
    if not replace:
        try:
            await once_visible(work, "CreateRoute", **parameters)
        except AlreadyExists:  # written before, but not visible when the table was described
            replace = True
    if replace:
        await once_visible(work, "ReplaceRoute", **parameters)
