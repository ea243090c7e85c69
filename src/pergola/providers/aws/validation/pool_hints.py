"""Hints about pools that Gardener admits, but whose machines AWS refuses to start.

The original's verdict decides whether a Shoot is refused, so these are warnings.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pergola.api.field_errors import Cause, invalid
from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.api.schema.read import Malformed
from pergola.extensions.provider_config import read_leniently
from pergola.extensions.workers.distribution import share
from pergola.providers.aws.validation.pools import PATH
from pergola.providers.aws.worker_config import WORKER_CONFIG, CapacityReservation, WorkerConfig

LONGEST_TAG: Final = 128
MOST_TAGS: Final = 50
_OWN_TAGS: Final = ("Name", "kubernetes.io/cluster/", "kubernetes.io/role/node")
_LABELS: Final = (
    "kubernetes.io/arch",
    "networking.gardener.cloud/node-local-dns-enabled",
    "node.kubernetes.io/role",
    "topology.kubernetes.io/region",
    "worker.garden.sapcloud.io/group",
    "worker.gardener.cloud/cri-name",
    "worker.gardener.cloud/gardener-node-agent-secret-name",
    "worker.gardener.cloud/pool",
    "worker.gardener.cloud/system-components",
)
"""Labels that gardenlet adds to those of a pool."""
_SHOWN: Final = 40

ON_DEMAND: Final = ""
SPOT: Final = "spot"
BLOCK: Final = "capacity-block"
INTERRUPTIBLE: Final = "interruptible-capacity-reservation"
ONLY: Final = "capacity-reservations-only"
ANY: Final = "any"
"""The reservation of instances that may run without one."""
TARGET: Final = "target"
"""A reservation, or a group of them, that has a name."""
DEFAULT: Final = "default"
HOST: Final = "host"


class Contradiction(NamedTuple):
    """Options that AWS does not take together; an empty tuple stands for any value.

    Attributes:
        field: that the user should change.
    """

    field: str
    detail: str
    markets: Sequence[str] = ()
    reservations: Sequence[str] = ()
    tenancies: Sequence[str] = ()


_MARKET: Final = "instanceMarketOptions.marketType"
_TENANCY: Final = "placement.tenancy"
CONTRADICTIONS: Final = (
    Contradiction(
        _MARKET,
        "spot instances do not run in reservations",
        markets=(SPOT,),
        reservations=(ONLY, TARGET),
    ),
    Contradiction(
        _MARKET,
        "needs the reservation: set capacityReservation.capacityReservationId",
        markets=(BLOCK, INTERRUPTIBLE),
        reservations=(ANY, ONLY),
    ),
    Contradiction(
        _TENANCY,
        "instances on dedicated hosts are bought on demand only",
        markets=(SPOT, BLOCK, INTERRUPTIBLE),
        tenancies=(HOST,),
    ),
    Contradiction(
        _TENANCY,
        "instances on dedicated hosts do not run in reservations",
        markets=(ON_DEMAND,),
        reservations=(ONLY, TARGET),
        tenancies=(HOST,),
    ),
)
"""All pairs of market, reservation and tenancy that AWS refuses."""


def pool_hints(shoot: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Yield what would prevent machines of a Shoot from starting, or end some that run.

    Args:
        old: the Shoot as it is stored; None while it is created.
    """
    before = {str(pool.get("name")): pool for pool in _pools(old or {})}
    for index, pool in enumerate(_pools(shoot)):
        path = f"{PATH}[{index}]"
        yield from _tags(f"{path}.labels", pool)
        yield from _options(f"{path}.providerConfig", pool)
        if (known := before.get(str(pool.get("name")))) is not None:
            yield from _smaller_zones(path, pool, known)


def _pools(shoot: JsonObject) -> list[JsonObject]:
    return maps_at(shoot, "spec", "provider", "workers")


def _tags(path: str, pool: JsonObject) -> Iterator[Cause]:
    """Check labels, which become tags of instances."""
    labels = map_at(pool, "labels")
    for key in labels:
        if len(key) > LONGEST_TAG:
            yield invalid(
                path,
                f"{key[:_SHOWN]}…",
                f"has {len(key)} characters, but labels are tags of instances, whose keys have at "
                f"most {LONGEST_TAG}: no machine can start",
            )
    runtimes = maps_at(pool, "cri", "containerRuntimes")
    tags = {*_OWN_TAGS, *_LABELS, *labels}
    tags |= {f"containerruntime.worker.gardener.cloud/{each.get('type')}" for each in runtimes}
    if len(tags) > MOST_TAGS:
        own = [key for key in labels if key not in (*_OWN_TAGS, *_LABELS)]
        surplus = own[len(own) - (len(tags) - MOST_TAGS) :]
        yield invalid(
            path,
            len(labels),
            f"labels are tags of instances, which have at most {MOST_TAGS}, "
            f"{len(tags) - len(own)} of them from Gardener: no machine can start; remove "
            + ", ".join(key[:_SHOWN] for key in surplus),
        )


def _options(path: str, pool: JsonObject) -> Iterator[Cause]:
    try:
        config = read_leniently(WorkerConfig, pool.get("providerConfig"), WORKER_CONFIG)
    except Malformed:
        return  # an error
    market, placement = config.instance_market_options, config.placement
    options = {
        _MARKET: market.market_type if market is not None else ON_DEMAND,
        _TENANCY: (placement.tenancy if placement is not None else None) or DEFAULT,
    }
    reservation = _reservation(config.capacity_reservation)
    for each in CONTRADICTIONS:
        meets = (
            (each.markets, options[_MARKET]),
            (each.reservations, reservation),
            (each.tenancies, options[_TENANCY]),
        )
        if all(value in values or not values for values, value in meets):
            detail = f"{each.detail}: no machine can start"
            yield invalid(f"{path}.{each.field}", options[each.field], detail)
    if placement is None:
        return
    if placement.affinity == HOST and placement.tenancy != HOST:
        detail = f"can only be used with tenancy {HOST}: no machine can start"
        yield invalid(f"{path}.placement.affinity", placement.affinity, detail)
    if placement.partition_number is not None and not placement.group_id:
        detail = "is a partition of a placement group: set groupId; no machine can start"
        yield invalid(f"{path}.placement.partitionNumber", placement.partition_number, detail)


def _reservation(given: CapacityReservation | None) -> str:
    if given is None:
        return ANY
    if given.capacity_reservation_id or given.capacity_reservation_resource_group_arn:
        return TARGET
    return ONLY if given.capacity_reservation_preference == ONLY else ANY


def _smaller_zones(path: str, pool: JsonObject, old: JsonObject) -> Iterator[Cause]:
    """Check whether more zones leave a smaller maximum to those that have machines."""
    zones, before = _zones_of(pool), _zones_of(old)
    if not before or len(zones) <= len(before):
        return
    maximum, maximum_before = pool.get("maximum"), old.get("maximum")
    if not isinstance(maximum, int) or not isinstance(maximum_before, int):
        return
    smaller = [
        f"{zone} has {now} instead of {was}"
        for index, zone in enumerate(before)
        if (now := share(maximum, index, len(zones)))
        < (was := share(maximum_before, index, len(before)))
    ]
    if smaller:
        yield invalid(
            f"{path}.maximum",
            maximum,
            "is distributed among more zones, and machines of a zone beyond its part end: "
            f"{', '.join(smaller)}",
        )


def _zones_of(pool: JsonObject) -> Sequence[str]:
    zones = pool.get("zones")
    return [str(zone) for zone in zones] if isinstance(zones, list) else []
