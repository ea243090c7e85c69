"""Facts from AWS's answers: public subnets, targets of routes, the API server's load balancer.

Pure; `completeness` judges the facts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pergola.api.cluster_api import AWS_PROVIDER_TAG
from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.cloud.aws import network
from pergola.cloud.aws.network import (
    EVERYWHERE,
    EVERYWHERE_IPV6,
    destination_of,
    route_tables_of,
    target_of,
)
from pergola.externally_managed.aws.desired import ROLES, Desired
from pergola.externally_managed.aws.observe import Observed
from pergola.externally_managed.contract import Endpoint

ZONE: Final = "availability-zone"
"""The type of zones other than edge zones."""
_API_PORTS: Final = (6443, 443)
_ROLE: Final = f"{AWS_PROVIDER_TAG}/role"
_CLUSTER: Final = f"{AWS_PROVIDER_TAG}/cluster/"


@dataclass(frozen=True, slots=True)
class Route:
    """A way out of a subnet.

    Attributes:
        destination: a CIDR, or the id of a prefix list.
        works: whether its target exists.
    """

    destination: str
    target: str
    works: bool

    @property
    def is_default(self) -> bool:
        """Whether it is a default route."""
        return self.destination in (EVERYWHERE, EVERYWHERE_IPV6)

    @property
    def leaves(self) -> bool:
        """Whether it leaves the VPC, rather than leading to private endpoints of AWS's services."""
        return self.target != "local" and not self.target.startswith("vpce-")


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet and its connections.

    Attributes:
        zone_type: `availability-zone`, `local-zone` or `wavelength-zone`.
        cidr: empty for an IPv6-only subnet.
        table: the id of its route table.
        nat: the id of the NAT gateway in it; empty if there is none.
        cidr6: empty without IPv6.
    """

    id: str
    zone: str
    zone_type: str
    cidr: str
    table: str
    routes: tuple[Route, ...] = ()
    nat: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    cidr6: str = ""

    @property
    def is_public(self) -> bool:
        """Whether its default route leads to an internet gateway."""
        return any(route.is_default and route.target.startswith("igw-") for route in self.routes)


@dataclass(frozen=True, slots=True)
class Balancer:
    """A load balancer.

    Attributes:
        scheme: `internal` or `internet-facing`.
        kind: `network`, `application`, `gateway` or `classic`.
        ports: the ports that it listens on, sorted.
    """

    name: str
    host: str
    scheme: str
    kind: str
    vpc: str
    state: str
    ports: tuple[int, ...]

    @property
    def endpoint(self) -> Endpoint | None:
        """The endpoint of the API server; None if the ports are ambiguous."""
        port = next((port for port in _API_PORTS if port in self.ports), 0)
        if not port and len(self.ports) == 1:
            port = self.ports[0]
        return Endpoint(self.host, port) if port and self.host else None


def tags_of(item: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags of a resource, without AWS's own, which users cannot set."""
    found = network.tags_of(item)
    return {key: found[key] for key in sorted(found) if not key.startswith("aws:")}


def subnets_of(observed: Observed) -> list[Subnet]:
    """Return the subnets of the network, sorted by zone and id."""
    explicit, main = route_tables_of(observed.route_tables)
    types = {zone.get("ZoneName"): str(zone.get("ZoneType") or ZONE) for zone in observed.zones}
    nats = _nats(observed.nat_gateways)
    found = []
    for item in observed.subnets:
        table = explicit.get(item["SubnetId"], main) or {}
        zone = str(item.get("AvailabilityZone", ""))
        found.append(
            Subnet(
                id=item["SubnetId"],
                zone=zone,
                zone_type=types.get(zone, ZONE),
                cidr=str(item.get("CidrBlock") or ""),
                table=str(table.get("RouteTableId", "")),
                routes=_routes(table),
                nat=nats.get(item["SubnetId"], ""),
                tags=tags_of(item),
                cidr6=str(_ipv6_block(item).get("Ipv6CidrBlock") or ""),
            )
        )
    return sorted(found, key=lambda subnet: (subnet.zone, subnet.id))


def ipv6_block_of(observed: Observed) -> JsonObject:
    """Return the VPC's IPv6 block with its pool; empty if it has none."""
    return _ipv6_block(observed.vpcs[0])


def _ipv6_block(item: JsonObject) -> JsonObject:
    """Return the first IPv6 block that is associated with a VPC or a subnet."""
    blocks = maps_at(item, "Ipv6CidrBlockAssociationSet")
    associated = (
        each
        for each in blocks
        if map_at(each, "Ipv6CidrBlockState").get("State") in (None, "associated")
    )
    return next(associated, {})


def internet_gateway_of(observed: Observed) -> str:
    """Return the id of the VPC's internet gateway; empty if it has none."""
    return min((str(item["InternetGatewayId"]) for item in observed.internet_gateways), default="")


def nat_states(observed: Observed) -> dict[str, str]:
    """Return the state of each NAT gateway, such as `available` or `failed`."""
    return {
        str(item["NatGatewayId"]): str(item.get("State", "available"))
        for item in observed.nat_gateways
    }


def tagged_groups(observed: Observed, desired: Desired) -> dict[str, list[str]]:
    """Return the ids of security groups by the role in their tags.

    If several clusters share a VPC, groups of other clusters are ignored, and groups tagged for
    this cluster take precedence over untagged ones.
    """
    own: dict[str, list[str]] = {}
    shared: dict[str, list[str]] = {}
    for group in observed.groups:
        tags = tags_of(group)
        role = tags.get(_ROLE, "")
        clusters = {key.removeprefix(_CLUSTER) for key in tags if key.startswith(_CLUSTER)}
        if role not in ROLES or (clusters and desired.cluster not in clusters):
            continue
        (own if clusters else shared).setdefault(role, []).append(group["GroupId"])
    return {role: sorted(ids) for role, ids in {**shared, **own}.items()}


def balancer_of(observed: Observed) -> Balancer | None:
    """Return the load balancer, from either generation of the API; None if there is none."""
    if not observed.load_balancers:
        return None
    item = observed.load_balancers[0]
    if "LoadBalancerArn" in item:
        return _newer(item, observed.listeners)
    return _classic(item)


def _newer(item: JsonObject, listeners: Iterable[JsonObject]) -> Balancer:
    return Balancer(
        name=str(item.get("LoadBalancerName", "")),
        host=str(item.get("DNSName") or ""),
        scheme=str(item.get("Scheme") or ""),
        kind=str(item.get("Type") or ""),
        vpc=str(item.get("VpcId") or ""),
        state=str((item.get("State") or {}).get("Code") or "active"),
        ports=tuple(sorted({int(port) for each in listeners if (port := each.get("Port"))})),
    )


def _classic(item: JsonObject) -> Balancer:
    listeners = (each.get("Listener") or {} for each in maps_at(item, "ListenerDescriptions"))
    return Balancer(
        name=str(item.get("LoadBalancerName", "")),
        host=str(item.get("DNSName") or ""),
        scheme=str(item.get("Scheme") or ""),
        kind="classic",
        vpc=str(item.get("VPCId") or ""),
        state="active",
        ports=tuple(
            sorted({int(port) for each in listeners if (port := each.get("LoadBalancerPort"))})
        ),
    )


def _routes(table: JsonObject) -> tuple[Route, ...]:
    return tuple(
        Route(
            destination_of(route) or str(route.get("DestinationPrefixListId") or ""),
            target_of(route),
            route.get("State", "active") == "active",
        )
        for route in maps_at(table, "Routes")
    )


def _nats(gateways: Iterable[JsonObject]) -> dict[str, str]:
    """Return the working NAT gateway in each subnet that has one."""
    working = (item for item in gateways if item.get("State", "available") == "available")
    ordered = sorted(working, key=lambda item: str(item["NatGatewayId"]), reverse=True)
    return {str(item.get("SubnetId")): str(item["NatGatewayId"]) for item in ordered}
