"""Routes in managed tables: compared by value, replaced only if they lead elsewhere (§3.5).

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
        to: a range; of IPv6 if there is a colon in it.
        target: the field of AWS that names the gateway.
        gateway: its id; None while there is none.
    """

    to: str
    target: str
    gateway: str | None

    @property
    def destination(self) -> dict[str, str]:
        """The destination, as AWS takes and shows it."""
        field = "DestinationIpv6CidrBlock" if ":" in self.to else "DestinationCidrBlock"
        return {field: self.to}


def changes(table: JsonObject | None, routes: Iterable[Route]) -> list[str]:
    """Return what would be written, in words; nothing if the table is right."""
    present = (table or {}).get("Routes") or []
    return [
        f"{route.to} to {route.gateway or 'what is created'}"
        for route in routes
        if not _leads(_same_destination(present, route), route)
    ]


async def ensure_routes(work: Work, table: JsonObject, routes: Iterable[Route]) -> None:
    """Correct the routes of a table, with one request for each that is missing or wrong.

    Raises:
        CloudError: AWS refused.
    """
    present: list[JsonObject] = table.setdefault("Routes", [])
    for route in routes:
        found = _same_destination(present, route)
        if _leads(found, route):
            continue
        await _write(work, table["RouteTableId"], route, replace=found is not None)
        if found is not None:
            present.remove(found)
        present.append({**route.destination, route.target: route.gateway, "State": "active"})


def _same_destination(present: list[JsonObject], route: Route) -> JsonObject | None:
    wanted = route.destination.items()
    return next((each for each in present if wanted <= each.items()), None)


def _leads(found: JsonObject | None, route: Route) -> bool:
    return (
        found is not None and route.gateway is not None and found.get(route.target) == route.gateway
    )


async def _write(work: Work, table: str, route: Route, *, replace: bool) -> None:
    parameters = {"RouteTableId": table, **route.destination, route.target: route.gateway}
    if not replace:
        try:
            await once_visible(work, "CreateRoute", **parameters)
        except AlreadyExists:  # written before, and not seen when the table was described
            replace = True
    if replace:
        await once_visible(work, "ReplaceRoute", **parameters)
