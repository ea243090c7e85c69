"""The desired subnets of a zone (spec 30 §3.2, §3.5, §3.6)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pergola.providers.aws import state as keys
from pergola.providers.aws.config import Zone
from pergola.providers.aws.desired import ROLE_INTERNAL, ROLE_PUBLIC, Desired

_PER_ZONE: Final = 3
_WORKERS, _INTERNAL, _PUBLIC = range(_PER_ZONE)
ROLES: Final = (keys.SUBNET_WORKERS, keys.SUBNET_INTERNAL, keys.SUBNET_PUBLIC)
"""The roles of subnets in the keys of the state, by place."""
PREFIXES: Final = ("nodes", "private-utility", "public-utility")
"""Of the names of subnets, before the `zN` of the zone, by place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnet:
    """A subnet that a zone should have.

    Attributes:
        role: the role in the key of the state, as in `SubnetWorkers`.
        prefix: the prefix of its name, before the `zN` of the zone.
        cidr: the IPv4 range; None if it has none.
        place: the /64 of the VPC's IPv6 block that it gets unless that is taken.
        tags: in addition to those of every resource of the cluster.
        ipv6: whether it has an IPv6 range.
        gives_ipv6: whether instances in it get an IPv6 address.
    """

    zone: str
    role: str
    prefix: str
    cidr: str | None
    place: int
    tags: dict[str, str] = field(default_factory=dict)
    ipv6: bool = False
    gives_ipv6: bool = False

    @property
    def native(self) -> bool:
        """Whether it is IPv6-only."""
        return self.cidr is None

    @property
    def key(self) -> str:
        """Key of its id in the state."""
        return keys.zone_key(self.zone, self.role)

    def __str__(self) -> str:
        return f"{self.prefix} {self.cidr or 'with IPv6 only'}"


def subnets_of(desired: Desired, zone: Zone) -> Iterator[Subnet]:
    """Yield the managed subnets of a zone; none if they are user-provided."""
    if zone.workers_subnet_id:
        return
    first = _PER_ZONE * desired.config.networks.zones.index(zone)
    ipv6 = desired.needs_ipv6_block
    yield Subnet(
        zone=zone.name,
        role=keys.SUBNET_WORKERS,
        prefix=PREFIXES[_WORKERS],
        cidr=zone.workers if desired.ipv4 else None,
        place=first + _WORKERS,
        ipv6=ipv6,
        gives_ipv6=desired.ipv6,
    )
    if zone.internal:
        yield Subnet(
            zone=zone.name,
            role=keys.SUBNET_INTERNAL,
            prefix=PREFIXES[_INTERNAL],
            cidr=zone.internal,
            place=first + _INTERNAL,
            tags={ROLE_INTERNAL: "1"},
            ipv6=ipv6,
        )
    if zone.public:
        yield Subnet(
            zone=zone.name,
            role=keys.SUBNET_PUBLIC,
            prefix=PREFIXES[_PUBLIC],
            cidr=zone.public,
            place=first + _PUBLIC,
            tags={ROLE_PUBLIC: "1"},
            ipv6=ipv6,
        )


def places_of(desired: Desired) -> int:
    """Return the number of places that are reserved for subnets of the config."""
    return _PER_ZONE * len(desired.config.networks.zones)
