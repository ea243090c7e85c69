"""Checks of user-provided subnets (spec 30 §5 L6 to L9)."""

from collections.abc import Iterator
from ipaddress import IPv6Network
from itertools import islice
from typing import Final, NamedTuple

from pergola.api.field_errors import invalid
from pergola.api.objects import JsonObject
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.preflight.finding import Finding, ec2, not_found, subnets_in, zone_path
from pergola.providers.aws.preflight.ranges import is_inside
from pergola.providers.aws.preflight.vpc import ipv6_blocks
from pergola.providers.aws.snapshot import Snapshot

WORKERS: Final = "workersSubnetID"
PUBLIC: Final = "publicSubnetID"
INTERNAL: Final = "internalSubnetID"
_SUBNET_BITS: Final = 64
_SUBNETS_IN_BLOCK: Final = 256


class Named(NamedTuple):
    """A subnet that the config names.

    Attributes:
        path: the path of the field.
        field: `workersSubnetID`, `publicSubnetID` or `internalSubnetID`.
    """

    path: str
    field: str
    id: str
    zone: str

    @property
    def is_for_balancers(self) -> bool:
        """Whether load balancers are placed in it."""
        return self.field != WORKERS


def named(desired: Desired) -> Iterator[Named]:
    """Return the subnets that the config names, zone by zone."""
    for index, zone in enumerate(desired.config.networks.zones):
        for field, name in (
            (WORKERS, zone.workers_subnet_id),
            (PUBLIC, zone.public_subnet_id),
            (INTERNAL, zone.internal_subnet_id),
        ):
            if name:
                yield Named(zone_path(index, field), field, name, zone.name)


def check(desired: Desired, snapshot: Snapshot) -> Iterator[Finding]:
    """Yield all findings about the user-provided subnets of all zones."""
    free = _free_ranges(snapshot)
    for each in named(desired):
        subnet = snapshot.subnets.get(each.id)
        if subnet is None:
            text = f"subnet {each.id} has not been found in {desired.region}"
            yield Finding(not_found(each.path, each.id, text), subnets_in(desired, each.zone))
            continue
        yield from _place(desired, each, subnet)
        if desired.needs_ipv6_block:
            yield from _ipv6(desired, each, subnet, free)
        if each.is_for_balancers:
            yield from _balancers(desired, each, subnet)
        else:
            yield from _nodes(desired, each, subnet)


def _place(desired: Desired, each: Named, subnet: JsonObject) -> Iterator[Finding]:
    vpc = desired.config.networks.vpc.id
    if subnet["VpcId"] != vpc:
        text = f"subnet {each.id} is in VPC {subnet['VpcId']}, not in {vpc}"
        yield Finding(invalid(each.path, each.id, text), subnets_in(desired, each.zone))
    if subnet["AvailabilityZone"] != each.zone:
        text = f"subnet {each.id} is in zone {subnet['AvailabilityZone']}, not in {each.zone}"
        yield Finding(invalid(each.path, each.id, text), subnets_in(desired, each.zone))


def _ipv6(
    desired: Desired, each: Named, subnet: JsonObject, free: Iterator[str]
) -> Iterator[Finding]:
    ranges = ipv6_blocks(subnet)
    if len(ranges) != 1:
        text = f"subnet {each.id} has {len(ranges)} IPv6 ranges; it needs exactly one"
        yield Finding(invalid(each.path, each.id, text), _ipv6_fix(desired, subnet, free))
    if each.field == WORKERS and not subnet.get("AssignIpv6AddressOnCreation"):
        text = f"subnet {each.id} does not give IPv6 addresses to new nodes"
        command = f"modify-subnet-attribute --subnet-id {each.id} --assign-ipv6-address-on-creation"
        yield Finding(invalid(each.path, each.id, text), ec2(desired, command))


def _ipv6_fix(desired: Desired, subnet: JsonObject, free: Iterator[str]) -> str:
    """Suggest associating a range, or removing one of several."""
    associations = subnet.get("Ipv6CidrBlockAssociationSet") or []
    extra = [each for each in associations if each["Ipv6CidrBlock"] in ipv6_blocks(subnet)][1:]
    if extra:
        name = extra[0]["AssociationId"]
        return ec2(desired, f"disassociate-subnet-cidr-block --association-id {name}")
    name = subnet["SubnetId"]
    cidr = next(free, "RANGE_OF_THE_VPC")
    command = f"associate-subnet-cidr-block --subnet-id {name} --ipv6-cidr-block {cidr}"
    return ec2(desired, command)


def _free_ranges(snapshot: Snapshot) -> Iterator[str]:
    """Yield each /64 of the VPC's blocks that no subnet uses."""
    taken = {block for subnet in snapshot.subnets.values() for block in ipv6_blocks(subnet)}
    for block in ipv6_blocks(snapshot.vpc or {}):
        network = IPv6Network(block)
        if network.prefixlen <= _SUBNET_BITS:
            for each in islice(network.subnets(new_prefix=_SUBNET_BITS), _SUBNETS_IN_BLOCK):
                if str(each) not in taken:
                    yield str(each)


def _balancers(desired: Desired, each: Named, subnet: JsonObject) -> Iterator[Finding]:
    """Check that subnets for load balancers have IPv4, whatever the families of the cluster."""
    if subnet.get("Ipv6Native") or not subnet.get("CidrBlock"):
        text = f"subnet {each.id} has no IPv4 range, which load balancers need"
        yield Finding(invalid(each.path, each.id, text), subnets_in(desired, each.zone))


def _nodes(desired: Desired, each: Named, subnet: JsonObject) -> Iterator[Finding]:
    cidr = subnet.get("CidrBlock")
    if not (cidr and desired.ipv4 and desired.node_range and ":" not in desired.node_range):
        return
    if not is_inside(cidr, [desired.node_range]):
        text = (
            f"range {cidr} of subnet {each.id} is not inside networking.nodes of the Shoot, "
            f"{desired.node_range}"
        )
        yield Finding(invalid(each.path, each.id, text), subnets_in(desired, each.zone))
