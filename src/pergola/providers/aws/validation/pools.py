"""The worker pools of a Shoot: zones, volumes, images, and their `WorkerConfig`."""

from collections.abc import Iterator, Sequence
from typing import Final

from pergola.api.field_errors import IMMUTABLE, Cause, invalid, required
from pergola.api.objects import JsonObject, JsonValue, map_at, maps_at
from pergola.api.schema.read import Malformed
from pergola.extensions.provider_config import read_leniently, read_strict
from pergola.providers.aws.cloud_profile_config import (
    AMD64,
    CLOUD_PROFILE_CONFIG,
    CloudProfileConfig,
    effective_spec,
)
from pergola.providers.aws.image_selection import definitions, flavor, machine_capabilities
from pergola.providers.aws.validation.worker_config import IO1, check_worker_config
from pergola.providers.aws.validation.written import malformed
from pergola.providers.aws.worker_config import WORKER_CONFIG, WorkerConfig

PATH: Final = "spec.provider.workers"
_MOST_DATA_VOLUMES: Final = 11
"""The device names of instances are exhausted beyond that."""
_IN_PLACE: Final = ("AutoInPlaceUpdate", "ManualInPlaceUpdate")


def check_pools(
    shoot: JsonObject,
    old: JsonObject | None,
    zones: Sequence[str],
    cloud_profile: JsonObject | None,
) -> Iterator[Cause]:
    """Yield all findings about the worker pools of a Shoot, and about their change.

    Args:
        zones: the zones that have a network; empty if these are unknown.
        cloud_profile: its CloudProfile or NamespacedCloudProfile; None if unknown, in which case
            machine types and images are not checked.
    """
    before = {str(pool.get("name")): pool for pool in _pools(old or {})}
    for index, pool in enumerate(_pools(shoot)):
        path = f"{PATH}[{index}]"
        yield from _volumes(path, pool)
        yield from _zones(f"{path}.zones", pool, zones)
        yield from _config(f"{path}.providerConfig", pool)
        if cloud_profile is not None:
            region = str(map_at(shoot, "spec").get("region") or "")
            yield from _machine(f"{path}.machine", pool, effective_spec(cloud_profile), region)
        if str(pool.get("name")) in before:
            yield from _update(path, pool, before[str(pool.get("name"))])


def _pools(shoot: JsonObject) -> list[JsonObject]:
    return maps_at(shoot, "spec", "provider", "workers")


def _volumes(path: str, pool: JsonObject) -> Iterator[Cause]:
    root = pool.get("volume")
    if not isinstance(root, dict):
        yield required(f"{path}.volume", "machines on AWS need a root volume: set size and type")
        return
    yield from _volume(path, "volume", root, pool)
    data = maps_at(pool, "dataVolumes")
    if len(data) > _MOST_DATA_VOLUMES:
        text = f"Too many: {len(data)}: must have at most {_MOST_DATA_VOLUMES} items"
        yield Cause("FieldValueTooMany", text, f"{path}.dataVolumes")
    for index, volume in enumerate(data):
        yield from _volume(path, f"dataVolumes[{index}]", volume, pool)


def _volume(path: str, field: str, volume: JsonObject, pool: JsonObject) -> Iterator[Cause]:
    if not volume.get("size"):
        yield required(f"{path}.{field}.size", "must not be empty")
    if volume.get("type") is None:
        yield required(f"{path}.{field}.type", "must not be empty")
    if volume.get("type") == IO1 and pool.get("providerConfig") is None:
        detail = f"a WorkerConfig must set the iops of the {IO1} volume in {field}"
        yield required(f"{path}.providerConfig", detail)


def _zones(path: str, pool: JsonObject, with_network: Sequence[str]) -> Iterator[Cause]:
    zones = _zones_of(pool)
    if not zones:
        yield required(path, "name at least one zone of the InfrastructureConfig")
    for index, zone in enumerate(zones):
        if with_network and zone not in with_network:
            detail = f"the InfrastructureConfig has only {', '.join(with_network)}"
            yield invalid(f"{path}[{index}]", zone, detail)


def _zones_of(pool: JsonObject) -> list[JsonValue]:
    zones = pool.get("zones")
    return zones if isinstance(zones, list) else []


def _config(path: str, pool: JsonObject) -> Iterator[Cause]:
    value = pool.get("providerConfig")
    if value is None:
        return
    try:
        config = read_strict(WorkerConfig, value, WORKER_CONFIG, path=path, needs_type=True)
    except Malformed as error:
        yield from malformed(error)
        return
    for cause in check_worker_config(config, pool):
        yield cause.under(path)


def _machine(path: str, pool: JsonObject, profile: JsonObject, region: str) -> Iterator[Cause]:
    """Check that the CloudProfile has the machine type and, in the region, the image."""
    machine = map_at(pool, "machine")
    name, image = machine.get("type"), machine.get("image")
    types = maps_at(profile, "machineTypes")
    found = next((each for each in types if each.get("name") == name), None)
    if found is None:
        yield invalid(f"{path}.type", name, "is not a machine type of the CloudProfile")
        return
    if not isinstance(image, dict):
        return  # Gardener chooses one
    try:
        value = profile.get("providerConfig")
        config = read_leniently(CloudProfileConfig, value, CLOUD_PROFILE_CONFIG)
    except Malformed:
        return  # the owner of the Shoot cannot repair it
    known = definitions(profile)
    architecture = str(machine.get("architecture") or found.get("architecture") or AMD64)
    capabilities = machine_capabilities(found, architecture, known)
    version = str(image.get("version") or "")
    chosen = flavor(config, str(image.get("name")), version, region, capabilities, known)
    if chosen is None or not chosen.ami:
        detail = f"the CloudProfile has no AMI of it for {name} in {region}"
        yield invalid(f"{path}.image", {"name": image.get("name"), "version": version}, detail)


def _update(path: str, pool: JsonObject, old: JsonObject) -> Iterator[Cause]:
    zones, before = _zones_of(pool), _zones_of(old)
    if zones[: len(before)] != before:
        detail = f"{IMMUTABLE}: zones can only be added, after {', '.join(map(str, before))}"
        yield invalid(f"{path}.zones", zones, detail)
    if pool.get("updateStrategy") not in _IN_PLACE:
        return
    for field in ("providerConfig", "dataVolumes"):
        if pool.get(field) != old.get(field):
            detail = f"{IMMUTABLE} in a pool that is updated in place: create another pool"
            yield invalid(f"{path}.{field}", pool.get(field), detail)
