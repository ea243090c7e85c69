"""Immutable fields of a config (spec 30 §1.4, §11)."""

from collections.abc import Iterator

from pergola.api.field_errors import IMMUTABLE, Cause, forbidden, invalid
from pergola.api.objects import JsonValue
from pergola.api.schema.declare import Value
from pergola.providers.aws.config import DualStack, InfrastructureConfig, Zone
from pergola.providers.aws.validation.zones import PATH

Field = str | bool | Value | None


def check_update(new: InfrastructureConfig, old: InfrastructureConfig) -> Iterator[Cause]:
    """Yield all findings about the change from one config to another.

    The validity of new zones depends on the new config alone, and is checked by `check_config`.
    """
    now, before = new.networks, old.networks
    yield from _fixed("networks.vpc.id", now.vpc.id, before.vpc.id)
    yield from _fixed("networks.vpc.cidr", now.vpc.cidr, before.vpc.cidr)
    yield from _fixed(
        "networks.nodesSecurityGroupID",
        now.nodes_security_group_id,
        before.nodes_security_group_id,
    )
    yield from _fixed(
        "enableDedicatedTenancyForVPC",
        new.enable_dedicated_tenancy_for_vpc,
        old.enable_dedicated_tenancy_for_vpc,
    )
    yield from _kept("networks.vpc.ipv6IpamPool", now.vpc.ipv6_ipam_pool, before.vpc.ipv6_ipam_pool)
    yield from _kept("elasticFileSystem", new.elastic_file_system, old.elastic_file_system)
    yield from _zones(now.zones, before.zones)
    if _is_on(old.dual_stack) and not _is_on(new.dual_stack):
        yield forbidden("dualStack.enabled", "must not be disabled again")


def _zones(now: list[Zone], before: list[Zone]) -> Iterator[Cause]:
    if len(now) < len(before):
        missing = [zone.name for zone in before[len(now) :]]
        names = [zone.name for zone in now]
        gone = [zone.name for zone in before if zone.name not in names] or missing
        yield forbidden(PATH, f"removing zones is not allowed: {', '.join(gone)}")
    for index, (new, old) in enumerate(zip(now, before, strict=False)):
        yield from _zone(f"{PATH}[{index}]", new, old)


def _zone(path: str, new: Zone, old: Zone) -> Iterator[Cause]:
    yield from _fixed(f"{path}.name", new.name, old.name)
    yield from _fixed(f"{path}.workersSubnetID", new.workers_subnet_id, old.workers_subnet_id)
    yield from _kept(f"{path}.workers", new.workers, old.workers)
    yield from _kept(f"{path}.internal", new.internal, old.internal)
    yield from _kept(f"{path}.public", new.public, old.public)
    yield from _kept(f"{path}.publicSubnetID", new.public_subnet_id, old.public_subnet_id)
    yield from _kept(f"{path}.internalSubnetID", new.internal_subnet_id, old.internal_subnet_id)


def _fixed(path: str, new: Field, old: Field) -> Iterator[Cause]:
    """Forbid any change: the field must stay as it was at creation, set or unset."""
    if new != old:
        yield invalid(path, _json(new), IMMUTABLE)


def _kept(path: str, new: Field, old: Field) -> Iterator[Cause]:
    """Forbid changing a field once it is set."""
    if old is not None and new != old:
        yield invalid(path, _json(new), IMMUTABLE)


def _json(value: Field) -> JsonValue:
    return value.to_json() if isinstance(value, Value) else value


def _is_on(dual_stack: DualStack | None) -> bool:
    return dual_stack is not None and dual_stack.enabled
