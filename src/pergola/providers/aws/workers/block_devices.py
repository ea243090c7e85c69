"""The volumes of machines (spec 31 §4.1)."""

import re
from typing import Final

from pergola.api.objects import JsonObject
from pergola.extensions.workers import Pool
from pergola.providers.aws.worker_config import (
    LARGEST,
    DataVolumeConfig,
    VolumeConfig,
    WorkerConfig,
)
from pergola.providers.aws.workers.problems import boolean_at, text_at, unusable

_SIZE: Final = re.compile("[0-9]+")
_LONGEST_SIZE: Final = 18
_ROOT: Final = "/root"
_PREFIX: Final = "/dev/sd"
_LETTERS: Final = "fghijklmnop"
"""The names that AWS keeps for volumes of users."""


def block_devices(pool: Pool[WorkerConfig]) -> list[JsonObject]:
    """Return the root volume, and the data volumes sorted by name.

    Raises:
        Problem: a volume is malformed, or there are too many.
    """
    root = {"ebs": _ebs(pool.volume, "volume", pool.config.volume)}
    volumes = pool.data_volumes
    if not volumes:
        return [root]
    if len(volumes) > len(_LETTERS):
        most = f"there are device names for {len(_LETTERS)} data volumes"
        raise unusable("dataVolumes", len(volumes), most)
    named = [
        (text_at(volume, "name", f"dataVolumes[{index}].name"), index)
        for index, volume in enumerate(volumes)
    ]
    found: list[JsonObject] = [{"deviceName": _ROOT, **root}]
    for letter, (name, index) in zip(_LETTERS, sorted(named), strict=False):
        speed = _config_of(name, pool.config)
        ebs = _ebs(volumes[index], f"dataVolumes[{index}]", speed)
        if speed is not None and speed.snapshot_id is not None:
            ebs["snapshotID"] = speed.snapshot_id
        found.append({"deviceName": f"{_PREFIX}{letter}", "ebs": ebs})
    return found


def _config_of(name: str, config: WorkerConfig) -> DataVolumeConfig | None:
    return next((each for each in config.data_volumes if each.name == name), None)


def _ebs(volume: JsonObject, path: str, speed: VolumeConfig | None) -> JsonObject:
    encrypted = boolean_at(volume, "encrypted", f"{path}.encrypted")
    values: JsonObject = {
        "volumeSize": _size(volume, path),
        "volumeType": text_at(volume, "type", f"{path}.type"),
        "encrypted": encrypted is not False,
        "iops": speed.iops if speed is not None else None,
    }
    found: JsonObject = {name: value for name, value in values.items() if value}
    found["deleteOnTermination"] = True
    if speed is not None and speed.throughput is not None:
        found["throughput"] = speed.throughput
    return found


def _size(volume: JsonObject, path: str) -> int:
    text = text_at(volume, "size", f"{path}.size")
    leading = _SIZE.match(text)
    if leading is None:
        raise unusable(f"{path}.size", text, "must begin with a number of GiB, such as 50Gi")
    digits = leading[0].lstrip("0") or "0"
    if len(digits) > _LONGEST_SIZE or int(digits) > LARGEST:
        raise unusable(f"{path}.size", text, f"volumes have at most {LARGEST} GiB")
    return int(digits)
