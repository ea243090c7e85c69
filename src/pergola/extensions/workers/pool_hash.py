"""The hashes of a worker pool (spec 31 §4.2).

A hash is part of the names of MachineClasses. If it changes, all machines of the pool are replaced,
so every byte is as in Gardener.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from typing import Final

from pergola.api.objects import JsonObject, JsonValue, map_at, maps_at
from pergola.bundle.versions import Version, VersionError
from pergola.extension_api.errors import ExtensionError, configuration_problem
from pergola.extensions.workers.plan import HashInput
from pergola.extensions.workers.pool import C, Pool
from pergola.health.times import read_time
from pergola.kube.quantities import QuantityError, canonical_quantity

_DIGITS: Final = 5
_IN_PLACE_DIGITS: Final = 16
_NIL: Final = "<nil>"
_RESERVED: Final = ("cpu", "memory", "pid", "ephemeralStorage")
_EVICTION: Final = (
    "imageFSAvailable",
    "imageFSInodesFree",
    "memoryAvailable",
    "nodeFSAvailable",
    "nodeFSInodesFree",
)


def pool_hash(pool: Pool[C], shoot: JsonObject, inputs: Sequence[HashInput]) -> str:
    """Return the hash in the names of a pool's MachineClasses: five hexadecimal digits.

    Args:
        shoot: the Shoot, with the rotations of its credentials.
        inputs: what the cloud adds.

    Raises:
        ExtensionError: the pool lacks the Secret of the node agent, or a value cannot be read.
    """
    return _digest((value for _, value in hash_inputs(pool, shoot, inputs)), _DIGITS)


def hash_inputs(
    pool: Pool[C], shoot: JsonObject, inputs: Sequence[HashInput]
) -> Iterator[HashInput]:
    """Yield everything that decides whether machines of a pool are replaced, in order.

    Raises:
        ExtensionError: see `pool_hash`.
    """
    secret = pool.raw.get("nodeAgentSecretName")
    if isinstance(secret, str):
        yield HashInput("nodeAgentSecretName", secret)
    elif not pool.is_in_place:
        raise ExtensionError(f'missing node-agent secret name for worker pool "{pool.name}"')
    if pool.is_in_place:
        yield HashInput("in-place update", in_place_hash(pool, shoot))
    yield from inputs


def in_place_hash(pool: Pool[C], shoot: JsonObject) -> str:
    """Return the hash of what is updated in place: sixteen hexadecimal digits.

    Raises:
        ExtensionError: the pool has no valid Kubernetes version, or a quantity that is none.
    """
    return _digest(_in_place_values(pool, shoot), _IN_PLACE_DIGITS)


def _in_place_values(pool: Pool[C], shoot: JsonObject) -> Iterator[str]:
    try:
        version = Version.parse(pool.kubernetes_version)
    except VersionError as error:
        raise ExtensionError(
            f'kubernetesVersion of worker pool "{pool.name}", which is updated in place: {error}'
        ) from error
    yield f"{version.major}.{version.minor}"
    yield pool.image[1]
    rotations = map_at(shoot, "status", "credentials", "rotation")
    for credential in ("certificateAuthorities", "serviceAccountKey"):
        if (started := _rotation_start(pool, map_at(rotations, credential))) is not None:
            yield started
    yield from _kubelet_values(pool, map_at(pool.raw, "kubeletConfig"))


def _rotation_start(pool: Pool[C], rotation: JsonObject) -> str | None:
    """Return when the rotation that concerns a pool began, as Go prints it."""
    of_pool = [
        each
        for each in maps_at(rotation, "pendingWorkersRollouts")
        if each.get("name") == pool.name
    ]
    started = read_time((of_pool or [rotation])[0].get("lastInitiationTime"))
    return None if started is None else f"{started.astimezone(UTC):%Y-%m-%d %H:%M:%S} +0000 UTC"


def _kubelet_values(pool: Pool[C], config: JsonObject) -> Iterator[str]:
    if config.get("kubeReserved") is not None:
        reserved = map_at(config, "kubeReserved")
        yield "-".join(_quantity(pool, reserved.get(name)) for name in _RESERVED)
    if config.get("evictionHard") is not None:
        eviction = map_at(config, "evictionHard")
        yield "-".join(str(eviction.get(name) or "") for name in _EVICTION)
    if config.get("cpuManagerPolicy") is not None:
        yield str(config["cpuManagerPolicy"])


def _quantity(pool: Pool[C], value: JsonValue) -> str:
    if value is None:
        return _NIL
    try:
        return canonical_quantity(value if isinstance(value, int | float) else str(value))
    except QuantityError as error:
        raise configuration_problem(
            f'kubeletConfig.kubeReserved of worker pool "{pool.name}": {error}'
        ) from error


def _digest(values: Iterable[str], digits: int) -> str:
    return _sha256("".join(_sha256(value) for value in values))[:digits]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
