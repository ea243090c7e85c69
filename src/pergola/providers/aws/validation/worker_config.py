"""All findings about the `WorkerConfig` of a pool; paths are relative to it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pergola.api.field_errors import Cause, duplicate, forbidden, invalid, required, unsupported
from pergola.api.objects import JsonObject, maps_at
from pergola.api.schema.quantity import ResourceList
from pergola.kube.quantities import QuantityError, parse_quantity
from pergola.providers.aws.validation.identifiers import (
    CAPACITY_RESERVATION,
    SNAPSHOT,
    check_id,
    check_text,
)
from pergola.providers.aws.worker_config import (
    LARGEST,
    CapacityReservation,
    CpuOptions,
    IamInstanceProfile,
    InstanceMetadataOptions,
    NetworkInterface,
    Placement,
    VolumeConfig,
    WorkerConfig,
)

IO1: Final = "io1"
"""The type of volumes whose speed must be given."""
_CORE: Final = ("cpu", "gpu", "memory")
_ONLY: Final = "capacity-reservations-only"
_PREFERENCES: Final = (_ONLY, "open", "none")
_TOKENS: Final = ("required", "optional")
_HOPS: Final = range(1, 65)
_SNP: Final = ("enabled", "disabled")
_THREADS: Final = (1, 2)
_EFA_ONLY: Final = "efa-only"
_INTERFACES: Final = ("interface", "efa", _EFA_ONLY)
_HOST: Final = "host"
_TENANCIES: Final = ("default", "dedicated", _HOST)
_AFFINITIES: Final = ("default", _HOST)
_MARKETS: Final = ("spot", "capacity-block", "interruptible-capacity-reservation")
_PROFILE: Final = re.compile(r"[\w+=,.@-]+", re.ASCII)
_PROFILE_ARN: Final = re.compile(r"arn:[\w +=,.@\-/:]+", re.ASCII)
_GROUP_ARN: Final = re.compile(r"arn:[\w-]+:resource-groups:[\w+=,.@\-/:]+", re.ASCII)


def check_worker_config(config: WorkerConfig, pool: JsonObject) -> Iterator[Cause]:
    """Yield all findings about the config of a pool.

    Args:
        pool: the pool of the Shoot, whose volumes the config is about.
    """
    yield from _volumes(config, pool)
    yield from _profile("iamInstanceProfile", config.iam_instance_profile)
    if config.node_template is not None:
        yield from _capacity("nodeTemplate.capacity", config.node_template.capacity)
        yield from _virtual("nodeTemplate.virtualCapacity", config.node_template.virtual_capacity)
    yield from _reservation("capacityReservation", config.capacity_reservation)
    yield from _metadata("instanceMetadataOptions", config.instance_metadata_options)
    yield from _cpu("cpuOptions", config.cpu_options)
    for index, interface in enumerate(config.network_interfaces):
        yield from _interface(f"networkInterfaces[{index}]", interface)
    yield from _placement("placement", config.placement)
    market = config.instance_market_options
    if market is not None:
        path = "instanceMarketOptions.marketType"
        yield from _one_of(path, market.market_type, _MARKETS)


def _volumes(config: WorkerConfig, pool: JsonObject) -> Iterator[Cause]:
    root = pool.get("volume")
    if isinstance(root, dict) and root.get("type") is not None:
        yield from _speed("volume", config.volume, root["type"])
    of_pool = maps_at(pool, "dataVolumes")
    configs = {each.name: each for each in reversed(config.data_volumes)}
    for index, volume in enumerate(of_pool):
        if volume.get("type") is not None:
            speed = configs.get(str(volume.get("name")))
            yield from _speed(f"dataVolumes[{index}]", speed, volume["type"])
    known = {str(volume.get("name")) for volume in of_pool if volume.get("type") is not None}
    seen: set[str] = set()
    for index, each in enumerate(config.data_volumes):
        path = f"dataVolumes[{index}]"
        if each.name not in known:
            detail = "is not the name of a data volume of the pool that has a type"
            yield invalid(f"{path}.name", each.name, detail)
        if each.name in seen:
            yield duplicate(f"{path}.name", each.name)
        seen.add(each.name)
        yield from check_id(f"{path}.snapshotID", each.snapshot_id or None, SNAPSHOT)


def _speed(path: str, speed: VolumeConfig | None, of_type: object) -> Iterator[Cause]:
    iops = speed.iops if speed else None
    if iops is not None and iops <= 0:
        yield forbidden(f"{path}.iops", "must be positive")
    elif iops is None and of_type == IO1:
        yield required(f"{path}.iops", f"must be set for volumes of type {IO1}")
    if speed is not None and speed.throughput is not None and speed.throughput <= 0:
        yield invalid(f"{path}.throughput", speed.throughput, "must be positive")


def _profile(path: str, profile: IamInstanceProfile | None) -> Iterator[Cause]:
    if profile is None:
        return
    if (profile.name is None) == (profile.arn is None):
        yield invalid(path, profile.to_json(), "must have either a name or an arn")
    yield from check_text(f"{path}.name", profile.name, _PROFILE, longest=128)
    yield from check_text(f"{path}.arn", profile.arn or None, _PROFILE_ARN)


def _capacity(path: str, resources: ResourceList) -> Iterator[Cause]:
    core = ((name, resources[name]) for name in _CORE if name in resources)
    for name, amount in core:
        yield from _amount(f"{path}.{name}", amount)


def _virtual(path: str, resources: ResourceList) -> Iterator[Cause]:
    for name, amount in resources.items():
        yield from _amount(f"{path}.{name}", amount, is_whole=True)


def _amount(path: str, amount: int | str, *, is_whole: bool = False) -> Iterator[Cause]:
    try:
        value = parse_quantity(amount)
    except QuantityError as error:
        yield invalid(path, amount, str(error))
        return
    if value < 0:
        yield invalid(path, amount, "must not be negative")
    if is_whole and value != int(value):
        yield invalid(path, amount, "must be a whole number")


def _reservation(path: str, reservation: CapacityReservation | None) -> Iterator[Cause]:
    if reservation is None:
        return
    preference = reservation.capacity_reservation_preference
    named = reservation.capacity_reservation_id
    group = reservation.capacity_reservation_resource_group_arn
    field = f"{path}.capacityReservationPreference"
    yield from _one_of(field, preference, _PREFERENCES)
    if preference not in (None, _ONLY) and (named is not None or group is not None):
        yield forbidden(field, f"must be {_ONLY} or absent if a reservation or a group is named")
    field = f"{path}.capacityReservationId"
    yield from check_id(field, named, CAPACITY_RESERVATION)
    yield from check_text(f"{path}.capacityReservationResourceGroupArn", group, _GROUP_ARN)
    if named is not None and group is not None:
        yield forbidden(field, "must not be set together with capacityReservationResourceGroupArn")


def _metadata(path: str, options: InstanceMetadataOptions | None) -> Iterator[Cause]:
    if options is None:
        return
    hops, tokens = options.http_put_response_hop_limit, options.http_tokens
    if hops is not None and hops not in _HOPS:
        yield invalid(f"{path}.httpPutResponseHopLimit", hops, "must be between 1 and 64")
    if tokens is not None and tokens not in _TOKENS:
        yield invalid(f"{path}.httpTokens", tokens, f"must be {' or '.join(_TOKENS)}")


def _cpu(path: str, options: CpuOptions | None) -> Iterator[Cause]:
    if options is None:
        return
    yield from _one_of(f"{path}.amdSevSnp", options.amd_sev_snp, _SNP)
    cores, threads = options.core_count, options.threads_per_core
    if cores is None and threads is not None:
        yield required(f"{path}.coreCount", "must be set together with threadsPerCore")
    elif threads is None and cores is not None:
        yield required(f"{path}.threadsPerCore", "must be set together with coreCount")
    elif threads is not None and threads not in _THREADS:
        yield invalid(f"{path}.threadsPerCore", threads, "must be 1 or 2")


def _interface(path: str, interface: NetworkInterface) -> Iterator[Cause]:
    card, cards = interface.network_card_index, interface.network_card_index_range
    yield from _one_of(f"{path}.type", interface.type, _INTERFACES)
    if card is not None and cards is not None:
        detail = "must not have both networkCardIndex and networkCardIndexRange"
        yield invalid(path, interface.to_json(), detail)
    if card is not None:
        yield from _between(f"{path}.networkCardIndex", card, 0)
    if cards is not None:
        field = f"{path}.networkCardIndexRange"
        if cards.first < 0:
            yield invalid(f"{field}.from", cards.first, "must not be negative")
        if cards.last > LARGEST:
            yield invalid(f"{field}.to", cards.last, f"must be at most {LARGEST}")
        if cards.first > cards.last:
            yield invalid(field, cards.to_json(), "from must not be greater than to")
    yield from _between(f"{path}.deviceIndex", interface.device_index, 0)
    if interface.type == _EFA_ONLY and _is_primary(interface):
        yield invalid(
            f"{path}.type",
            _EFA_ONLY,
            "the primary interface, network card 0 and device 0, must be an interface or efa",
        )


def _is_primary(interface: NetworkInterface) -> bool:
    cards = interface.network_card_index_range
    first = cards.first if cards is not None else 0
    return first == 0 and not interface.network_card_index and interface.device_index == 0


def _placement(path: str, placement: Placement | None) -> Iterator[Cause]:
    if placement is None:
        return
    yield from _one_of(f"{path}.tenancy", placement.tenancy, _TENANCIES)
    yield from _one_of(f"{path}.affinity", placement.affinity, _AFFINITIES)
    if placement.host_id is not None and placement.tenancy != _HOST:
        yield forbidden(f"{path}.hostId", f"can only be used with tenancy {_HOST}")
    if placement.partition_number is not None:
        yield from _between(f"{path}.partitionNumber", placement.partition_number, 1)


def _one_of(path: str, value: str | None, values: Sequence[str]) -> Iterable[Cause]:
    if value is not None and value not in values:
        yield unsupported(path, value, values)


def _between(path: str, value: int, smallest: int) -> Iterator[Cause]:
    if not smallest <= value <= LARGEST:
        yield invalid(path, value, f"must be between {smallest} and {LARGEST}")
