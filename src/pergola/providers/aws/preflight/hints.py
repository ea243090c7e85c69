"""Possible problems of user-provided networks that do not block (spec 30 Beyond 11, §8.3).

Each of them shows up later as something else: nodes that do not join, Services without an address.
"""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import (
    BLACKHOLE,
    is_default,
    leads_to_internet,
    target_of,
)
from pergola.providers.aws.desired import ROLE_INTERNAL, SHARED, Desired
from pergola.providers.aws.load_balancer_roles import Role, tagged
from pergola.providers.aws.preflight.finding import Finding, ec2, hint, subnets_in, zone_path
from pergola.providers.aws.preflight.ranges import overlap
from pergola.providers.aws.preflight.subnets import INTERNAL, PUBLIC, WORKERS, Named, named
from pergola.providers.aws.routing import table_of
from pergola.providers.aws.snapshot import Snapshot

FREE_ADDRESSES: Final = 8
"""The number of free addresses that a load balancer wants in each of its subnets."""
_ZONES_FOR_ALB: Final = 2
ROLES: Final = {PUBLIC: Role.PUBLIC, INTERNAL: Role.INTERNAL}


def check(desired: Desired, snapshot: Snapshot) -> Iterator[Finding]:
    """Yield hints about user-provided subnets."""
    if snapshot.vpc is None or not desired.config.byo_subnets:
        return
    for each in named(desired):
        if each.id not in snapshot.subnets:
            continue
        if each.field == WORKERS:
            yield from _way_out(desired, snapshot, each)
        else:
            yield from _free(desired, snapshot, each)
            yield from _unreachable(desired, snapshot, each)
            yield from _way_in(desired, snapshot, each)
    yield from _balancers(desired, snapshot)


def balancer_subnets(desired: Desired, snapshot: Snapshot, field: str) -> dict[str, set[str]]:
    """Return the subnets for load balancers by zone, both named and tagged ones.

    Args:
        field: `publicSubnetID` or `internalSubnetID`.
    """
    role = ROLES[field]
    found = tagged(desired, role, snapshot.subnets)
    return {
        zone.name: {*found.get(zone.name, ()), *filter(None, (role.named_by(zone),))}
        for zone in desired.config.networks.zones
    }


def _way_out(desired: Desired, snapshot: Snapshot, each: Named) -> Iterator[Finding]:
    """Check whether nodes can reach more than the VPC."""
    table = table_of(snapshot, each.id)
    if table is None:
        return
    ways = _defaults(table)
    lost = [way for way in ways if way.get("State") == BLACKHOLE]
    name = table["RouteTableId"]
    if lost:
        target = target_of(lost[0]) or "nothing"
        text = f"the default route of {each.id} in {name} leads to {target}, which is gone"
        yield hint(each.path, text, _replace(desired, table, lost[0], snapshot))
    elif not ways and not _beyond(table):
        text = (
            f"subnet {each.id} has no default route in {name}, and no route to a transit gateway "
            "or peering: its nodes reach the API server and registries only if endpoints of the "
            "VPC lead there"
        )
        yield hint(each.path, text, _create(desired, name, snapshot))
    if not ways and not _endpoint_tables(snapshot, "s3").intersection({name}):
        text = f"subnet {each.id} has neither a default route nor a gateway endpoint for s3"
        yield hint(each.path, text, _endpoint(desired, snapshot, name))


def _defaults(table: JsonObject) -> list[JsonObject]:
    return [route for route in table.get("Routes") or () if is_default(route)]


def _beyond(table: JsonObject) -> bool:
    return any(
        route.get("TransitGatewayId") or route.get("VpcPeeringConnectionId")
        for route in table.get("Routes") or ()
    )


def _create(desired: Desired, table: str, snapshot: Snapshot) -> str:
    way = "--destination-cidr-block 0.0.0.0/0"
    return ec2(
        desired, f"create-route --route-table-id {table} {way} --nat-gateway-id {_nat(snapshot)}"
    )


def _replace(desired: Desired, table: JsonObject, route: JsonObject, snapshot: Snapshot) -> str:
    name = table["RouteTableId"]
    if route.get("DestinationIpv6CidrBlock"):
        way = "--destination-ipv6-cidr-block ::/0 --egress-only-internet-gateway-id GATEWAY"
    else:
        way = f"--destination-cidr-block 0.0.0.0/0 --nat-gateway-id {_nat(snapshot)}"
    return ec2(desired, f"replace-route --route-table-id {name} {way}")


def _nat(snapshot: Snapshot) -> str:
    """Suggest a NAT gateway; the user may choose another one."""
    usable = [k for k, nat in snapshot.nat_gateways.items() if nat.get("State") == "available"]
    return min(usable, default="NAT_GATEWAY")


def _endpoint_tables(snapshot: Snapshot, service: str) -> set[str]:
    """Return the tables with a gateway endpoint, according to the endpoint itself."""
    return {
        str(table)
        for endpoint in snapshot.endpoints.values()
        if str(endpoint.get("ServiceName")).endswith(f".{service}")
        for table in endpoint.get("RouteTableIds") or ()
    }


def _endpoint(desired: Desired, snapshot: Snapshot, table: str) -> str:
    service = f"com.amazonaws.{desired.region}.s3"
    known = [
        name
        for name, endpoint in snapshot.endpoints.items()
        if endpoint.get("ServiceName") == service
        and endpoint.get("VpcEndpointType", "Gateway") == "Gateway"
    ]
    if known:
        command = f"modify-vpc-endpoint --vpc-endpoint-id {known[0]} --add-route-table-ids {table}"
    else:
        command = (
            f"create-vpc-endpoint --vpc-id {desired.config.networks.vpc.id} "
            f"--service-name {service} --route-table-ids {table}"
        )
    return ec2(desired, command)


def _free(desired: Desired, snapshot: Snapshot, each: Named) -> Iterator[Finding]:
    free = int(snapshot.subnets[each.id].get("AvailableIpAddressCount", FREE_ADDRESSES))
    if free < FREE_ADDRESSES:
        text = f"subnet {each.id} has {free} free addresses; a load balancer wants {FREE_ADDRESSES}"
        yield hint(each.path, text, subnets_in(desired, each.zone))


def _unreachable(desired: Desired, snapshot: Snapshot, each: Named) -> Iterator[Finding]:
    """Check that the subnet is not in a range of the cluster: nodes would not leave the VPC."""
    cidr = snapshot.subnets[each.id].get("CidrBlock")
    for title, ranges in (("pods", desired.pod_ranges), ("services", desired.service_ranges)):
        if cidr and any(overlap(cidr, other) for other in ranges):
            text = (
                f"range {cidr} of subnet {each.id} overlaps with the range of {title}, "
                f"{', '.join(ranges)}: nodes may not reach the load balancers in it"
            )
            yield hint(each.path, text, subnets_in(desired, each.zone))


def _way_in(desired: Desired, snapshot: Snapshot, each: Named) -> Iterator[Finding]:
    """Check routes to the internet gateway: public load balancers need one, internal ones none."""
    table = table_of(snapshot, each.id)
    if table is None:
        return
    open_ways = [way for way in _defaults(table) if leads_to_internet(way)]
    name = table["RouteTableId"]
    if each.field == PUBLIC and not open_ways:
        text = f"subnet {each.id} has no route to an internet gateway in {name}"
        gateway = min(snapshot.internet_gateways, default="INTERNET_GATEWAY")
        way = f"--destination-cidr-block 0.0.0.0/0 --gateway-id {gateway}"
        yield hint(each.path, text, ec2(desired, f"create-route --route-table-id {name} {way}"))
    if each.field == INTERNAL and open_ways:
        text = (
            f"subnet {each.id} has a route to {target_of(open_ways[0])} in {name}: load balancers "
            "in it count as public"
        )
        way = "--destination-cidr-block 0.0.0.0/0"
        yield hint(each.path, text, ec2(desired, f"delete-route --route-table-id {name} {way}"))


def _balancers(desired: Desired, snapshot: Snapshot) -> Iterator[Finding]:
    """Check whether load balancers find subnets, and enough of them."""
    found = {field: balancer_subnets(desired, snapshot, field) for field in ROLES}
    if not any(any(zones.values()) for zones in found.values()):
        text = (
            "no subnet is for load balancers: the Service controller is switched off, and "
            "Services of type LoadBalancer stay pending; name some, or tag some"
        )
        yield hint("networks.zones", text, _tag(desired, "SUBNET", ROLE_INTERNAL))
        return
    for field, zones in found.items():
        yield from _coverage(desired, field, zones)


def _coverage(desired: Desired, field: str, zones: dict[str, set[str]]) -> Iterator[Finding]:
    covered = [zone for zone, several in zones.items() if several]
    if not covered:
        return
    for index, (zone, several) in enumerate(zones.items()):
        if not several:
            text = f"zone {zone} has no subnet for {ROLES[field]} load balancers; others have"
            yield hint(zone_path(index, field), text, _tag(desired, "SUBNET", ROLES[field].tag))
    if len(covered) < _ZONES_FOR_ALB:
        text = (
            f"subnets for {ROLES[field]} load balancers are in one zone only; an application "
            "load balancer needs two"
        )
        yield hint("networks.zones", text, _tag(desired, "SUBNET", ROLES[field].tag))


def _tag(desired: Desired, subnet: str, role: str) -> str:
    tags = f"Key={desired.cluster_tag},Value={SHARED} Key={role},Value=1"
    return ec2(desired, f"create-tags --resources {subnet} --tags {tags}")
