"""Which route table a subnet has, and where its routes lead (spec 30 §7)."""

from collections.abc import Iterable, Iterator
from typing import Final

from pergola.api.ip_ranges import parse_network
from pergola.api.objects import JsonObject
from pergola.providers.aws.snapshot import Snapshot

INTERNET_GATEWAY: Final = "igw-"
BLACKHOLE: Final = "blackhole"


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


def dead_pod_routes(table: JsonObject, pod_ranges: Iterable[str]) -> Iterator[str]:
    """The destinations of routes to pods whose node is gone.

    Args:
        pod_ranges: the ranges of all pods of the cluster, as CIDRs.
    """
    ranges = [parse_network(cidr) for cidr in pod_ranges]
    for route in table.get("Routes") or ():
        destination = destination_of(route)
        if route.get("State") != BLACKHOLE or not destination:
            continue
        network = parse_network(destination)
        # Ranges of the other family are no supernets of anything; subnet_of would raise.
        if any(
            network.version == pods.version
            and network.prefixlen >= pods.prefixlen
            and network.network_address in pods
            for pods in ranges
        ):
            yield destination


def destination_of(route: JsonObject) -> str:
    """Where a route leads, as a CIDR; empty for prefix lists."""
    return str(route.get("DestinationCidrBlock") or route.get("DestinationIpv6CidrBlock") or "")
