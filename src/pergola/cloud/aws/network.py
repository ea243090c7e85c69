"""Facts about networks, derived from AWS's descriptions: tags, route tables, routes. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pergola.api.objects import JsonObject, maps_at

EVERYWHERE: Final = "0.0.0.0/0"
EVERYWHERE_IPV6: Final = "::/0"
BLACKHOLE: Final = "blackhole"
_INTERNET_GATEWAY: Final = "igw-"
# The fields of a route that can name its target; the first one that is set counts.
_TARGETS: Final = (
    "NatGatewayId",
    "TransitGatewayId",
    "VpcPeeringConnectionId",
    "EgressOnlyInternetGatewayId",
    "CarrierGatewayId",
    "LocalGatewayId",
    "CoreNetworkArn",
    "NetworkInterfaceId",
    "InstanceId",
    "GatewayId",
)


def tags_of(thing: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags of a described resource."""
    return {str(tag.get("Key")): str(tag.get("Value") or "") for tag in maps_at(thing, "Tags")}


def filters_by(values: Mapping[str, str]) -> list[JsonObject]:
    """Return the filters of a describe request, each with one value."""
    return [{"Name": name, "Values": [value]} for name, value in values.items()]


def route_tables_of(
    tables: Iterable[JsonObject],
) -> tuple[dict[str, JsonObject], JsonObject | None]:
    """Return the route tables by associated subnet, and the main route table."""
    explicit: dict[str, JsonObject] = {}
    main: JsonObject | None = None
    for table in tables:
        for association in maps_at(table, "Associations"):
            if association.get("Main"):
                main = table
            elif subnet := association.get("SubnetId"):
                explicit[str(subnet)] = table
    return explicit, main


def destination_of(route: JsonObject) -> str:
    """Return the CIDR of a route's destination; empty for prefix lists."""
    return str(route.get("DestinationCidrBlock") or route.get("DestinationIpv6CidrBlock") or "")


def target_of(route: JsonObject) -> str:
    """Return the id of a route's target; empty if it has none."""
    return next((str(route[name]) for name in _TARGETS if route.get(name)), "")


def is_default(route: JsonObject) -> bool:
    """Return whether a route is a default route, in either IP family."""
    return destination_of(route) in (EVERYWHERE, EVERYWHERE_IPV6)


def leads_to_internet(route: JsonObject) -> bool:
    """Return whether a route leads to an internet gateway, which makes the subnet public."""
    return target_of(route).startswith(_INTERNET_GATEWAY)
