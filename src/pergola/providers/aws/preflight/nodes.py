"""Whether the network has room for all nodes that the pools of the Shoot may have (spec 31 §6).

Without an overlay, each node takes a route in every route table of the cluster. The maxima of the
pools are known beforehand, so that the owner hears of it before nodes fail to join.
"""

from collections.abc import Iterator
from typing import Final

from pergola.api.ip_ranges import parse_network
from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import destination_of, is_default, tags_of
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.preflight.finding import Finding, hint, subnets_in, zone_path
from pergola.providers.aws.preflight.ranges import overlap
from pergola.providers.aws.resources.route_quota import CODE, LEAST, SERVICE, may_exceed
from pergola.providers.aws.routing import table_of
from pergola.providers.aws.snapshot import Snapshot

RESERVED: Final = 5
"""The addresses of each subnet that AWS keeps for itself."""


def check(desired: Desired, snapshot: Snapshot) -> Iterator[Finding]:
    """Yield hints about route tables and subnets that are too small."""
    yield from _routes(desired, snapshot)
    for index, zone in enumerate(desired.config.networks.zones):
        subnet = snapshot.subnets.get(zone.workers_subnet_id or "")
        if subnet is not None and desired.ipv4:
            path = zone_path(index, "workersSubnetID")
            yield from _addresses(desired, subnet, zone.name, path)


def _routes(desired: Desired, snapshot: Snapshot) -> Iterator[Finding]:
    if not may_exceed(desired):
        return
    tables = _tables(desired, snapshot)
    others = {name: _others(desired, table) for name, table in tables.items()}
    fullest = max(others, key=lambda name: others[name], default="")
    nodes = sum(desired.most_nodes.values())
    needed = nodes + others.get(fullest, 0)
    quota = snapshot.route_quota
    if needed <= (LEAST if quota is None else quota):
        return
    beside = f" beside {_counted(others[fullest])} in {fullest}" if fullest else ""
    limit = (
        f"its quota cannot be read, and may be as low as {LEAST}"
        if quota is None
        else f"it allows {quota}"
    )
    text = (
        f"the pools may have {nodes} nodes, and without an overlay each needs a route{beside}: the "
        f"account must allow {needed} routes in a table, but {limit}; pods of further nodes would "
        "not be reachable"
    )
    fix = (
        f"aws service-quotas request-service-quota-increase --service-code {SERVICE} "
        f"--quota-code {CODE} --desired-value {needed} --region {desired.region}"
    )
    yield hint("networks.zones", text, fix)


def _tables(desired: Desired, snapshot: Snapshot) -> dict[str, JsonObject]:
    """Return the tables that get routes to pods: those with the cluster's tag, and of workers."""
    found = {
        name: table
        for name, table in snapshot.route_tables.items()
        if desired.cluster_tag in tags_of(table)
    }
    for zone in desired.config.networks.zones:
        if zone.workers_subnet_id and (table := table_of(snapshot, zone.workers_subnet_id)):
            found[str(table["RouteTableId"])] = table
    return found


def _others(desired: Desired, table: JsonObject) -> int:
    """Count the routes that do not lead to pods; AWS counts those of IPv6 separately."""
    return sum(
        is_default(route) or not any(overlap(destination_of(route), r) for r in desired.pod_ranges)
        for route in table.get("Routes") or ()
        if not route.get("DestinationIpv6CidrBlock")
    )


def _counted(others: int) -> str:
    return f"{others} other" if others == 1 else f"{others} others"


def _addresses(desired: Desired, subnet: JsonObject, zone: str, path: str) -> Iterator[Finding]:
    cidr, nodes = subnet.get("CidrBlock"), desired.most_nodes.get(zone, 0)
    if not cidr:
        return
    size = parse_network(str(cidr)).num_addresses - RESERVED
    if nodes > size:
        free = subnet.get("AvailableIpAddressCount", "unknown")
        text = (
            f"subnet {subnet['SubnetId']} has {size} addresses, {free} of them free, but the pools "
            f"may have {nodes} nodes in zone {zone}"
        )
        yield hint(path, text, subnets_in(desired, zone))
