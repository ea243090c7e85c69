"""A cluster's resources in AWS as a tree. Pure.

It contains only resources that belong to the cluster or are used by it; others in the VPC are
counted.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import destination_of, tags_of
from pergola.flow import State
from pergola.providers.aws.config import Zone
from pergola.providers.aws.control_plane.values import Given
from pergola.providers.aws.desired import SHARED, Desired
from pergola.providers.aws.resources.security_group.desired import bastion_groups
from pergola.providers.aws.routing import table_of
from pergola.providers.aws.snapshot import Snapshot
from pergola.providers.aws.status import NODES, nodes_security_group, subnets_of

_TARGETS: Final = (
    "GatewayId",
    "NatGatewayId",
    "EgressOnlyInternetGatewayId",
    "TransitGatewayId",
    "VpcPeeringConnectionId",
    "NetworkInterfaceId",
    "InstanceId",
)
_GONE: Final = ("deleted", "deleting")


class Owner(StrEnum):
    """The owner of a resource."""

    OURS = "ours"
    USERS = "the user's"
    TAGGED = "the user's, with our tag"
    UNKNOWN = ""


@dataclass(frozen=True, slots=True)
class Thing:
    """A resource in AWS, or a part of the drawing such as a zone.

    Attributes:
        kind: its type, such as `subnet for nodes`.
        name: its id; empty if it has none.
        detail: additional information, such as its range.
        parts: its contents and parts.
    """

    kind: str
    name: str = ""
    detail: str = ""
    owner: Owner = Owner.UNKNOWN
    parts: tuple["Thing", ...] = ()

    @property
    def title(self) -> str:
        """Kind, name and detail in one line."""
        return " ".join(part for part in (self.kind, self.name, self.detail) if part)

    def containing(self, part: "Thing") -> "Thing":
        """Return the same with one more part, the last."""
        return replace(self, parts=(*self.parts, part))

    def data(self) -> JsonObject:
        """Return it and its parts for programs."""
        return {
            "kind": self.kind,
            "name": self.name,
            "detail": self.detail,
            "owner": str(self.owner),
            "parts": [part.data() for part in self.parts],
        }


def things(desired: Desired, snapshot: Snapshot, state: State) -> Thing:
    """Return all resources of a cluster, from the VPC down to routes."""
    parts = [
        *([_vpc(desired, snapshot, state, snapshot.vpc)] if snapshot.vpc else []),
        *_identities(desired, snapshot),
        *_file_system(desired, snapshot),
    ]
    detail = f"in {desired.region}" if parts else f"in {desired.region}: there is nothing yet"
    return Thing("cluster", desired.technical_id, detail, parts=tuple(parts))


def control_plane(given: Given) -> Thing:
    """Return what controllers of the control plane get from the network, each with the reason."""
    controllers = [Thing(text, parts=(Thing(reason),)) for text, reason in given.controllers()]
    return Thing("control plane", parts=tuple(controllers))


def _vpc(desired: Desired, snapshot: Snapshot, state: State, vpc: JsonObject) -> Thing:
    blocks = [vpc.get("CidrBlock"), *_ipv6(vpc, "Ipv6CidrBlockAssociationSet")]
    zones = [_zone(desired, snapshot, state, zone) for zone in desired.config.networks.zones]
    parts = (
        *_each(desired, "internet gateway", snapshot.internet_gateways),
        *_each(desired, "egress-only internet gateway", snapshot.egress_only_gateways),
        *_endpoints(desired, snapshot),
        *zones,
        *_other_tables(desired, snapshot, zones),
        *_groups(desired, snapshot, state),
        *_others(snapshot, zones),
    )
    name = str(vpc["VpcId"])
    return Thing("VPC", name, _joined(blocks), _owner(desired, vpc), parts)


def _zone(desired: Desired, snapshot: Snapshot, state: State, zone: Zone) -> Thing:
    found = [
        _subnet(desired, snapshot, purpose, name, snapshot.subnets[name])
        for purpose, name in subnets_of(zone, state)
        if name in snapshot.subnets
    ]
    return Thing("zone", zone.name, parts=tuple(found))


def _subnet(
    desired: Desired, snapshot: Snapshot, purpose: str, name: str, subnet: JsonObject
) -> Thing:
    blocks = [subnet.get("CidrBlock"), *_ipv6(subnet, "Ipv6CidrBlockAssociationSet")]
    free = subnet.get("AvailableIpAddressCount")
    detail = _joined([*blocks, f"({free} addresses free)" if free is not None else None])
    gateways = [
        _nat(desired, nat_name, nat)
        for nat_name, nat in snapshot.nat_gateways.items()
        if nat.get("SubnetId") == name and nat.get("State") not in _GONE
    ]
    table = table_of(snapshot, name)
    tables = [_table(desired, table)] if table else []
    kind = "subnet for nodes" if purpose == NODES else f"subnet for {purpose} load balancers"
    return Thing(kind, name, detail, _owner(desired, subnet), (*tables, *gateways))


def _nat(desired: Desired, name: str, nat: JsonObject) -> Thing:
    addresses = [
        _joined([address.get("PublicIp"), address.get("AllocationId")])
        for address in nat.get("NatGatewayAddresses") or ()
    ]
    detail = _joined([*addresses, None if nat.get("State") == "available" else nat.get("State")])
    return Thing("NAT gateway", name, detail, _owner(desired, nat))


def _table(desired: Desired, table: JsonObject) -> Thing:
    is_main = any(each.get("Main") for each in table.get("Associations") or ())
    routes = tuple(
        Thing("route", "", f"{_destination(route)} → {_target(route)}")
        for route in table.get("Routes") or ()
    )
    kind = "main route table" if is_main else "route table"
    return Thing(kind, str(table["RouteTableId"]), "", _owner(desired, table), routes)


def _destination(route: JsonObject) -> str:
    return destination_of(route) or str(route.get("DestinationPrefixListId") or "somewhere")


def _target(route: JsonObject) -> str:
    target = next((str(route[key]) for key in _TARGETS if route.get(key)), "nothing")
    return f"{target} (blackhole)" if route.get("State") == "blackhole" else target


def _endpoints(desired: Desired, snapshot: Snapshot) -> Iterator[Thing]:
    for name, endpoint in snapshot.endpoints.items():
        service = str(endpoint.get("ServiceName", "")).rpartition(".")[2]
        yield Thing("gateway endpoint", name, f"for {service}", _owner(desired, endpoint))


def _other_tables(desired: Desired, snapshot: Snapshot, zones: Iterable[Thing]) -> Iterator[Thing]:
    """Yield our route tables that no subnet uses yet."""
    shown = {table.name for zone in zones for subnet in zone.parts for table in subnet.parts}
    for name, table in snapshot.route_tables.items():
        if name not in shown and desired.owns(tags_of(table)):
            yield _table(desired, table)


def _groups(desired: Desired, snapshot: Snapshot, state: State) -> Iterator[Thing]:
    nodes = nodes_security_group(desired, state)
    bastions = bastion_groups(desired, snapshot.security_groups)
    for name, group in {**snapshot.security_groups, **snapshot.foreign_groups}.items():
        if name != nodes and name not in bastions:
            continue
        rules = (
            f"{len(group.get('IpPermissions') or ())} rules in, "
            f"{len(group.get('IpPermissionsEgress') or ())} out"
        )
        kind = "security group of nodes" if name == nodes else "security group of a bastion"
        yield Thing(kind, name, rules, _owner(desired, group))


def _others(snapshot: Snapshot, zones: Iterable[Thing]) -> Iterator[Thing]:
    """Yield the number of subnets in the VPC that the cluster does not use."""
    used = {subnet.name for zone in zones for subnet in zone.parts}
    others = len(snapshot.subnets.keys() - used)
    if others:
        yield Thing("other subnets", "", str(others), Owner.USERS)


def _identities(desired: Desired, snapshot: Snapshot) -> Iterator[Thing]:
    """Yield IAM resources and the key pair, which have names of ours."""
    if snapshot.role:
        yield Thing("IAM role", str(snapshot.role.get("RoleName")), "", Owner.OURS)
    if snapshot.instance_profile:
        name = str(snapshot.instance_profile.get("InstanceProfileName"))
        yield Thing("IAM instance profile", name, "", Owner.OURS)
    if snapshot.key_pair:
        yield Thing("key pair", str(snapshot.key_pair.get("KeyName")), "", Owner.OURS)


def _file_system(desired: Desired, snapshot: Snapshot) -> Iterator[Thing]:
    if snapshot.file_system:
        targets = f"mounted in {len(snapshot.mount_targets)} subnets"
        name = str(snapshot.file_system.get("FileSystemId"))
        yield Thing("EFS file system", name, targets, _owner(desired, snapshot.file_system))


def _each(desired: Desired, kind: str, found: Mapping[str, JsonObject]) -> Iterator[Thing]:
    for name, thing in found.items():
        yield Thing(kind, name, "", _owner(desired, thing))


def _owner(desired: Desired, thing: JsonObject) -> Owner:
    tags = tags_of(thing)
    if desired.owns(tags):
        return Owner.OURS
    return Owner.TAGGED if tags.get(desired.cluster_tag) == SHARED else Owner.USERS


def _ipv6(thing: JsonObject, associations: str) -> list[str]:
    return [str(each.get("Ipv6CidrBlock")) for each in thing.get(associations) or ()]


def _joined(texts: Iterable[object]) -> str:
    return " ".join(str(text) for text in texts if text)
