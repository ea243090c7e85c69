"""Zones and their subnets, managed or user-provided (spec 30 §1.4, V1-V9, V11, V14)."""

import re
from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import Cause, duplicate, forbidden, invalid, required, unsupported
from pergola.providers.aws.config import InfrastructureConfig, Zone
from pergola.providers.aws.validation.facts import ShootFacts
from pergola.providers.aws.validation.identifiers import ELASTIC_IP, SUBNET, check_id

PATH: Final = "networks.zones"
NEEDS_VPC: Final = "can only be used with networks.vpc.id"
_NAME: Final = re.compile("[a-z0-9-]+")
_LONGEST_NAME: Final = 255


def check_zones(
    config: InfrastructureConfig, facts: ShootFacts, old: InfrastructureConfig | None
) -> Iterator[Cause]:
    """Yield findings about the zones, apart from their CIDRs."""
    zones = config.networks.zones
    if not zones:
        yield required(PATH, "at least one zone is required")
        return
    yield from _names(zones, facts, old.networks.zones if old else [])
    yield from _kinds(zones, facts)
    for index, zone in enumerate(zones):
        path = f"{PATH}[{index}]"
        yield from _workers(path, zone, facts)
        yield from _subnets(path, zone, byo_vpc=config.networks.vpc.id is not None)
        yield from _elastic_ip(path, zone, facts)
    yield from _missing_load_balancer_subnets(zones)
    yield from _repeated(zones)


def _names(zones: list[Zone], facts: ShootFacts, old: list[Zone]) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, zone in enumerate(zones):
        path = f"{PATH}[{index}].name"
        is_as_before = index < len(old) and old[index] == zone
        if not _NAME.fullmatch(zone.name):
            yield invalid(path, zone.name, f"does not match ^{_NAME.pattern}$")
        elif len(zone.name) > _LONGEST_NAME:
            yield invalid(path, zone.name, f"must have at most {_LONGEST_NAME} characters")
        if not is_as_before:
            if facts.zones is not None and zone.name not in facts.zones:
                yield unsupported(path, zone.name, facts.zones)
            if zone.name in seen:
                yield duplicate(path, zone.name)
        seen.add(zone.name)


def _kinds(zones: list[Zone], facts: ShootFacts) -> Iterator[Cause]:
    """Yield findings about zones that mix managed and user-provided worker subnets.

    A zone with both has a separate finding, and counts as neither here.
    """
    byo = [zone.workers_subnet_id is not None for zone in zones]
    ranged = [zone.workers is not None for zone in zones]
    if not any(byo) and not any(ranged) and not facts.has_only_ipv6:
        yield required(PATH, "the zones have neither workers nor workersSubnetID")
    is_some_byo = any(b and not r for b, r in zip(byo, ranged, strict=True))
    is_some_managed = any(
        not b and (r or facts.has_only_ipv6) for b, r in zip(byo, ranged, strict=True)
    )
    if is_some_byo and is_some_managed:
        yield forbidden(
            PATH,
            "all zones must have workers, or all must have workersSubnetID: subnets to be created "
            "and subnets that exist cannot be mixed",
        )


def _workers(path: str, zone: Zone, facts: ShootFacts) -> Iterator[Cause]:
    if zone.workers_subnet_id is not None:
        if zone.workers is not None:
            yield invalid(
                f"{path}.workers", zone.workers, "must not be set together with workersSubnetID"
            )
    elif zone.workers is None and not facts.has_only_ipv6:
        yield required(
            path, "either workers (a range) or workersSubnetID (a subnet that exists) is needed"
        )


def _subnets(path: str, zone: Zone, *, byo_vpc: bool) -> Iterator[Cause]:
    byo_workers = zone.workers_subnet_id is not None
    if byo_workers:
        for name, cidr in (("internal", zone.internal), ("public", zone.public)):
            if cidr is not None:
                yield forbidden(
                    f"{path}.{name}",
                    "must not be set together with workersSubnetID, with which no subnet is "
                    f"created: name one that exists with {name}SubnetID, or leave this out",
                )
    yield from _subnet(f"{path}.workersSubnetID", zone.workers_subnet_id, byo_vpc=byo_vpc)
    for name, subnet in _load_balancer_subnets(zone):
        if byo_workers:
            yield from _subnet(f"{path}.{name}", subnet, byo_vpc=byo_vpc)
        elif subnet is not None:
            yield forbidden(f"{path}.{name}", "can only be used with workersSubnetID")
    if zone.public_subnet_id and zone.public_subnet_id == zone.internal_subnet_id:
        yield invalid(
            f"{path}.internalSubnetID",
            zone.internal_subnet_id,
            "must not be publicSubnetID too: a public subnet has a route to the internet, an "
            "internal one has none",
        )


def _subnet(path: str, subnet: str | None, *, byo_vpc: bool) -> Iterator[Cause]:
    if subnet is not None and not byo_vpc:
        yield forbidden(path, NEEDS_VPC)
    yield from check_id(path, subnet, SUBNET)


def _elastic_ip(path: str, zone: Zone, facts: ShootFacts) -> Iterator[Cause]:
    address = zone.elastic_ip_allocation_id
    if address is None:
        return
    field = f"{path}.elasticIPAllocationID"
    has_workers = zone.workers is not None or facts.has_only_ipv6
    if zone.workers_subnet_id is not None or not has_workers or zone.public is None:
        yield forbidden(
            field, "can only be used with workers and public: it is for a NAT gateway between them"
        )
    yield from check_id(field, address, ELASTIC_IP)


def _missing_load_balancer_subnets(zones: list[Zone]) -> Iterator[Cause]:
    """Check that each role has a named subnet in every zone, or in none, to be found by tags."""
    byo = [(i, zone) for i, zone in enumerate(zones) if zone.workers_subnet_id is not None]
    for name in ("publicSubnetID", "internalSubnetID"):
        missing = [i for i, zone in byo if dict(_load_balancer_subnets(zone))[name] is None]
        if len(missing) == len(byo):
            continue
        for index in missing:
            yield required(f"{PATH}[{index}].{name}", "must be set in all zones or in none")


def _repeated(zones: list[Zone]) -> Iterator[Cause]:
    """Yield duplicates; one subnet may serve nodes and load balancers of its zone."""
    workers: set[str] = set()
    load_balancers: set[str] = set()
    addresses: set[str] = set()
    for index, zone in enumerate(zones):
        path = f"{PATH}[{index}]"
        uses = [
            ("workersSubnetID", zone.workers_subnet_id, workers),
            *((name, subnet, load_balancers) for name, subnet in _load_balancer_subnets(zone)),
            ("elasticIPAllocationID", zone.elastic_ip_allocation_id, addresses),
        ]
        for name, value, seen in uses:
            if value and value in seen:
                yield duplicate(f"{path}.{name}", value)
            if value:
                seen.add(value)


def _load_balancer_subnets(zone: Zone) -> tuple[tuple[str, str | None], tuple[str, str | None]]:
    return ("publicSubnetID", zone.public_subnet_id), ("internalSubnetID", zone.internal_subnet_id)
