"""Which route table a subnet has, and where its routes lead (spec 30 §7)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.providers.aws.snapshot import Snapshot

INTERNET_GATEWAY: Final = "igw-"


def table_of(snapshot: Snapshot, subnet: str) -> JsonObject | None:
    """The route table of a subnet: the one that is associated with it, else the VPC's main one."""
    main = None
    for table in snapshot.route_tables.values():
        for association in table.get("Associations") or ():
            if association.get("SubnetId") == subnet:
                return table
            if association.get("Main"):
                main = table
    return main


def reaches_internet(snapshot: Snapshot, subnet: str) -> bool:
    """Whether a subnet has a route to an internet gateway, so that the internet reaches it."""
    routes = (table_of(snapshot, subnet) or {}).get("Routes") or ()
    return any(str(route.get("GatewayId") or "").startswith(INTERNET_GATEWAY) for route in routes)


def destination_of(route: JsonObject) -> str:
    """Where a route leads, as a CIDR; empty for prefix lists."""
    return str(route.get("DestinationCidrBlock") or route.get("DestinationIpv6CidrBlock") or "")
