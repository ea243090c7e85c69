"""The route table of a subnet, and its reachability from the internet (spec 30 §7)."""

from pergola.api.objects import JsonObject, maps_at
from pergola.cloud.aws.network import leads_to_internet, route_tables_of
from pergola.providers.aws.snapshot import Snapshot


def table_of(snapshot: Snapshot, subnet: str) -> JsonObject | None:
    """Return the route table that is associated with a subnet, else the VPC's main one."""
    explicit, main = route_tables_of(snapshot.route_tables.values())
    return explicit.get(subnet, main)


def reaches_internet(snapshot: Snapshot, subnet: str) -> bool:
    """Return whether a subnet has a route to an internet gateway."""
    return any(map(leads_to_internet, maps_at(table_of(snapshot, subnet) or {}, "Routes")))
