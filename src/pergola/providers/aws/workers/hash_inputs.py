"""The inputs of a pool's hash, in Gardener's order (spec 31 §4.2).

A new order, another text or one value more replaces the machines of every cluster.
"""

import re
from collections.abc import Iterator
from decimal import ROUND_UP
from typing import Final

from pergola.api.known.kubernetes_versions import Minor, parse_version
from pergola.api.objects import JsonObject, map_at
from pergola.extensions.workers import HashInput, Pool
from pergola.kube.quantities import QuantityError, parse_quantity
from pergola.providers.aws.worker_config import NetworkInterface, WorkerConfig
from pergola.providers.aws.workers.problems import NO_QUANTITY, boolean_at, plain, text_at, unusable

_SINGLE_VALUES: Final = Minor(1, 34)
"""The first version of Kubernetes with which single values count instead of the bytes."""
_CONFIG: Final = "providerConfig"
_TOO_LARGE: Final = 2**63
_FEW_DIGITS: Final = 18
_NUMBER: Final = re.compile("[0-9.]+")
# Blanks as Go's regular expressions have them.
_S: Final = rb"[\t\n\f\r ]*"
_MAP: Final = rb'"virtualCapacity"' + _S + rb":" + _S + rb"\{[^{}]*\}" + _S
_ALONE: Final = re.compile(
    rb'"nodeTemplate"' + _S + rb":" + _S + rb"\{" + _S + _MAP + rb"\}" + _S + rb",?"
)
_LAST: Final = re.compile(rb"," + _S + _MAP)
_DANGLING: Final = re.compile(rb"," + _S + rb"\}")


def hash_inputs(pool: Pool[WorkerConfig]) -> list[HashInput]:
    """Return the inputs of a pool's hash.

    Raises:
        Problem: the version of Kubernetes, a volume or an amount is malformed.
    """
    given = pool.raw.get("kubernetesVersion")
    if given is not None and parse_version(pool.kubernetes_version) is None:
        raise unusable("kubernetesVersion", given, "must be a version of Kubernetes")
    if pool.is_in_place:
        return [*_root_volume(pool)]
    found = [*_root_volume(pool), *_data_volumes(pool)]
    if not hashes_written(pool):
        return [*found, *_config(pool.config)]
    written = _without_virtual_capacity(pool)
    return [*found, HashInput(_CONFIG, written.decode(errors="replace"))] if written else found


def hashes_written(pool: Pool[WorkerConfig]) -> bool:
    """Return whether the hash of a pool depends on the bytes of its `providerConfig`."""
    version = parse_version(pool.kubernetes_version)
    is_old = version is None or version.of_minor < _SINGLE_VALUES
    return is_old and not pool.is_in_place


def _without_virtual_capacity(pool: Pool[WorkerConfig]) -> bytes:
    """Return the bytes without a virtual capacity, so that adding one replaces no machines."""
    template = map_at(pool.raw, _CONFIG, "nodeTemplate")
    if template.get("virtualCapacity") is None:
        return pool.written
    return _DANGLING.sub(b"}", _LAST.sub(b"", _ALONE.sub(b"", pool.written))).strip()


def _root_volume(pool: Pool[WorkerConfig]) -> Iterator[HashInput]:
    yield from _encrypted(pool.volume, "volume")


def _data_volumes(pool: Pool[WorkerConfig]) -> Iterator[HashInput]:
    for index, volume in enumerate(pool.data_volumes):
        path = f"dataVolumes[{index}]"
        yield HashInput(f"{path}.size", text_at(volume, "size", f"{path}.size"))
        if volume.get("type") is not None:
            yield HashInput(f"{path}.type", text_at(volume, "type", f"{path}.type"))
        yield from _encrypted(volume, path)


def _encrypted(volume: JsonObject, path: str) -> Iterator[HashInput]:
    value = boolean_at(volume, "encrypted", f"{path}.encrypted")
    if value is not None:
        yield HashInput(f"{path}.encrypted", "true" if value else "false")


def _config(config: WorkerConfig) -> Iterator[HashInput]:
    for field, value in _values(config):
        if value is not None:
            yield HashInput(f"{_CONFIG}.{field}", str(value))


def _values(config: WorkerConfig) -> Iterator[tuple[str, str | int | None]]:
    """Yield all values that count; those that are absent are None."""
    yield from _capacity(config)
    yield from _volumes(config)
    yield from _access(config)
    yield from _hardware(config)
    for index, interface in enumerate(config.network_interfaces):
        for field, value in _interface(interface):
            yield f"networkInterfaces[{index}].{field}", value
    if placement := config.placement:
        yield "placement.groupId", placement.group_id
        yield "placement.tenancy", placement.tenancy
        yield "placement.hostId", placement.host_id
        yield "placement.partitionNumber", placement.partition_number
        yield "placement.affinity", placement.affinity


def _capacity(config: WorkerConfig) -> Iterator[tuple[str, str]]:
    template = config.node_template
    for name, quantity in sorted(template.capacity.items() if template else ()):
        field = f"nodeTemplate.capacity.{plain(name)}"
        try:
            yield field, f"{name}={_integer(quantity)}"
        except QuantityError:
            raise unusable(f"{_CONFIG}.{field}", quantity, NO_QUANTITY) from None


def _integer(quantity: str | int) -> int:
    """Return an amount rounded up, as an integer of Go with 64 bits.

    Go's arithmetic makes 0 of an amount that is too large and has few digits, and keeps the lowest
    bits of one with many.
    """
    amount = int(parse_quantity(quantity).to_integral_value(ROUND_UP))
    if -_TOO_LARGE <= amount < _TOO_LARGE:
        return amount
    digits = _NUMBER.findall(str(quantity))[0].replace(".", "").lstrip("0")
    if len(digits) <= _FEW_DIGITS:
        return 0
    return (amount + _TOO_LARGE) % (2 * _TOO_LARGE) - _TOO_LARGE


def _volumes(config: WorkerConfig) -> Iterator[tuple[str, str | int | None]]:
    if volume := config.volume:
        yield "volume.iops", volume.iops
        yield "volume.throughput", volume.throughput
    for index, each in enumerate(config.data_volumes):
        path = f"dataVolumes[{index}]"
        yield f"{path}.name", each.name
        yield f"{path}.iops", each.iops
        yield f"{path}.throughput", each.throughput
        yield f"{path}.snapshotID", each.snapshot_id


def _access(config: WorkerConfig) -> Iterator[tuple[str, str | int | None]]:
    if profile := config.iam_instance_profile:
        yield "iamInstanceProfile.name", profile.name
        yield "iamInstanceProfile.arn", profile.arn
    if metadata := config.instance_metadata_options:
        hops = metadata.http_put_response_hop_limit
        yield "instanceMetadataOptions.httpTokens", metadata.http_tokens
        yield "instanceMetadataOptions.httpPutResponseHopLimit", hops


def _hardware(config: WorkerConfig) -> Iterator[tuple[str, str | int | None]]:
    if cpu := config.cpu_options:
        yield "cpuOptions.coreCount", cpu.core_count
        yield "cpuOptions.threadsPerCore", cpu.threads_per_core
    if reservation := config.capacity_reservation:
        path = "capacityReservation.capacityReservation"
        yield f"{path}Preference", reservation.capacity_reservation_preference
        yield f"{path}Id", reservation.capacity_reservation_id
        yield f"{path}ResourceGroupArn", reservation.capacity_reservation_resource_group_arn
    if market := config.instance_market_options:
        yield "instanceMarketOptions.marketType", market.market_type


def _interface(interface: NetworkInterface) -> Iterator[tuple[str, str | int | None]]:
    yield "type", interface.type or "interface"
    yield "deviceIndex", interface.device_index
    yield "networkCardIndex", interface.network_card_index
    if cards := interface.network_card_index_range:
        yield "networkCardIndexRange.from", cards.first
        yield "networkCardIndexRange.to", cards.last
    yield "subnetID", interface.subnet_id
