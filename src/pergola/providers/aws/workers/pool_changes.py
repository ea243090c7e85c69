"""The effects of a changed Worker on the machines of each pool, before it is written. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final, NamedTuple

import orjson

from pergola.api.field_errors import sentence
from pergola.api.known.kubernetes_versions import parse_version
from pergola.api.objects import JsonObject, Key, map_at
from pergola.extension_api.cluster import Cluster
from pergola.extension_api.errors import ExtensionError, configuration_problem
from pergola.extensions.workers import Pool, WorkerPlan
from pergola.extensions.workers.distribution import share, share_of_either, surge_of
from pergola.extensions.workers.inputs import pools_of
from pergola.extensions.workers.pool_hash import hash_inputs, pool_hash
from pergola.providers.aws.worker_config import WorkerConfig
from pergola.providers.aws.workers.actuator import AwsWorker
from pergola.providers.aws.workers.hash_inputs import hash_inputs as inputs_of_aws
from pergola.providers.aws.workers.hash_inputs import hashes_written

_KUBELET: Final = ("kubeReserved", "evictionHard", "cpuManagerPolicy")
_CONFIG: Final = "providerConfig"
_ESCAPED: Final = "<>&\u2028\u2029"
AGENT: Final = "nodeAgentSecretName"


class Fate(StrEnum):
    """The effect on a pool, or on its machines in a zone."""

    CREATE = "create"
    REPLACE = "replace"
    IN_PLACE = "update in place"
    CHANGE = "change"
    DELETE = "delete"
    KEEP = "keep"


class Change(NamedTuple):
    """A changed input of the hash.

    Attributes:
        old: None if there was none.
        new: None if there is none.
        by_gardenlet: whether gardenlet replaces the machines for it, with another Secret of the
            node agent, which the given Worker does not name yet.
    """

    field: str
    old: str | None
    new: str | None
    by_gardenlet: bool = False


class Zone(NamedTuple):
    """The machines of a pool in a zone.

    Attributes:
        deployment: the name of the MachineDeployment.
        machines: their number before the change.
        surge: how many machines there may be in addition while they are replaced.
        unavailable: how many may be missing meanwhile.
        surplus: how many of them exceed the new maximum of the zone, and end.
    """

    name: str
    deployment: str
    fate: Fate
    machines: int
    surge: int = 0
    unavailable: int = 0
    surplus: int = 0


class PoolChange(NamedTuple):
    """The effect on a pool.

    Attributes:
        hashes: before and after; empty texts if there is no pool.
        inputs: the inputs of the hash that change.
        fields: other fields that change, which replace no machine.
    """

    name: str
    fate: Fate
    hashes: tuple[str, str]
    inputs: Sequence[Change] = ()
    fields: Sequence[str] = ()
    zones: Sequence[Zone] = ()


def pool_changes(
    old: JsonObject | None,
    new: JsonObject,
    cluster: Cluster,
    *,
    written: Mapping[str, bytes],
    machines: Mapping[str, int],
) -> list[PoolChange]:
    """Return what happens to each pool, in the order of the new Worker; then to removed pools.

    Args:
        old: the Worker as it is; None if there is none.
        written: the bytes of each pool's `providerConfig` in the old Worker, if an API server has
            returned them.
        machines: the numbers of machines by MachineDeployment; the minimum counts for others.

    Raises:
        ExtensionError: a Worker or the Cluster is wrong.
    """
    plan = _plan(new, old, cluster)
    if findings := [*AwsWorker().check(plan)]:
        raise configuration_problem(f"invalid worker: {sentence(findings)}")
    rendered = AwsWorker().render(plan)
    before = {} if old is None else {pool.name: pool for pool in _pools(old)}
    found = []
    for pool, of_pool in zip(plan.pools, rendered.pools, strict=True):
        current = before.pop(pool.name, None)
        if current is None:
            digits = pool_hash(pool, plan.shoot.raw, of_pool.hash_inputs)
            zones = [*_zones(plan, None, pool, Fate.CREATE, machines)]
            found.append(PoolChange(pool.name, Fate.CREATE, ("", digits), zones=zones))
        else:
            pair = _with_bytes(current, pool, written.get(pool.name))
            found.append(_compared(plan, *pair, machines))
    return [*found, *(_removed(plan, pool, machines) for pool in before.values())]


def _compared(
    plan: WorkerPlan[WorkerConfig],
    old: Pool[WorkerConfig],
    new: Pool[WorkerConfig],
    machines: Mapping[str, int],
) -> PoolChange:
    shoot = plan.shoot.raw
    of_old, of_new = inputs_of_aws(old), inputs_of_aws(new)
    before, after = pool_hash(old, shoot, of_old), pool_hash(new, shoot, of_new)
    changes = [
        *_differences(dict(hash_inputs(old, shoot, of_old)), dict(hash_inputs(new, shoot, of_new)))
    ]
    is_to_come = old.raw.get(AGENT) == new.raw.get(AGENT) and not new.is_in_place
    covered = _differences(_of_agent(old), _of_agent(new))
    changes += [change._replace(by_gardenlet=is_to_come) for change in covered]
    roots = {change.field.partition(".")[0].partition("[")[0] for change in changes}
    fields = [
        name
        for name in sorted(old.raw.keys() | new.raw.keys())
        if old.raw.get(name) != new.raw.get(name) and name not in roots
    ]
    fate = Fate.CHANGE if fields else Fate.KEEP
    if before != after or any(change.by_gardenlet for change in changes):
        fate = Fate.IN_PLACE if new.is_in_place else Fate.REPLACE
    zones = [*_zones(plan, old, new, fate, machines)]
    return PoolChange(new.name, fate, (before, after), changes, fields, zones)


def _removed(
    plan: WorkerPlan[WorkerConfig], pool: Pool[WorkerConfig], machines: Mapping[str, int]
) -> PoolChange:
    zones = [*_zones(plan, pool, pool, Fate.DELETE, machines)]
    return PoolChange(pool.name, Fate.DELETE, ("", ""), zones=zones)


def _zones(
    plan: WorkerPlan[WorkerConfig],
    old: Pool[WorkerConfig] | None,
    new: Pool[WorkerConfig],
    fate: Fate,
    machines: Mapping[str, int],
) -> Iterator[Zone]:
    """Yield the zones in the order in which their MachineDeployments are numbered."""
    count = len(new.zones)
    before = 0 if old is None else len(old.zones)
    names = [*new.zones, *(old.zones[count:] if old is not None else ())]
    for index, name in enumerate(names):
        deployment = f"{plan.technical_id}-{new.name}-z{index + 1}"
        running = 0
        if old is not None and index < before and not plan.shoot.hibernation_enabled:
            running = machines.get(deployment, share(old.minimum, index, before))
        if index >= count:
            yield Zone(name, deployment, Fate.DELETE, running)
        elif index >= before:
            yield Zone(name, deployment, Fate.CREATE, share(new.minimum, index, count))
        else:
            surplus = max(0, running - share(new.maximum, index, count))
            yield Zone(name, deployment, fate, running, *_at_a_time(new, index, running), surplus)


def _at_a_time(pool: Pool[WorkerConfig], zone: int, running: int) -> tuple[int, int]:
    """Return how many machines may be added, and how many missing, as numbers.

    If both are 0, machine-controller-manager lets one machine be missing.
    """
    surge = _number(pool, "maxSurge", zone, pool.maximum)
    unavailable = _number(pool, "maxUnavailable", zone, pool.minimum)
    more = surge_of(surge, running)
    fewer = unavailable if isinstance(unavailable, int) else running * int(unavailable[:-1]) // 100
    return (more, fewer) if more or fewer else (0, 1)


def _number(pool: Pool[WorkerConfig], field: str, zone: int, total: int) -> int | str:
    value = pool.raw.get(field)
    given = value if isinstance(value, int | str) else 0
    try:
        return share_of_either(given, zone, len(pool.zones), total)
    except (ValueError, ZeroDivisionError) as error:
        raise configuration_problem(f'{field} of worker pool "{pool.name}": {error}') from error


def _differences(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
    for field in dict.fromkeys([*new, *old]):
        if old.get(field) != new.get(field):
            yield Change(field, old.get(field), new.get(field))


def _of_agent(pool: Pool[WorkerConfig]) -> dict[str, str]:
    """Return the fields of a pool that decide the name of its node agent's Secret."""
    found: dict[str, str] = {"machineType": pool.machine_type}
    found["machineImage.name"], found["machineImage.version"] = pool.image
    version = parse_version(pool.kubernetes_version)
    found["kubernetesVersion"] = "" if version is None else str(version.of_minor)
    for name in ("type", "size"):
        if pool.volume.get(name) is not None:
            found[f"volume.{name}"] = str(pool.volume[name])
    kubelet = map_at(pool.raw, "kubeletConfig")
    for name in _KUBELET:
        if kubelet.get(name) is not None:
            value = orjson.dumps(kubelet[name], option=orjson.OPT_SORT_KEYS)
            found[f"kubeletConfig.{name}"] = value.decode()
    return found


def _plan(new: JsonObject, old: JsonObject | None, cluster: Cluster) -> WorkerPlan[WorkerConfig]:
    """Return the input of rendering; what a manifest leaves out is as in the old Worker."""
    if cluster.shoot is None:
        raise ExtensionError(f"Cluster {cluster.name} has no Shoot")
    spec, before = map_at(new, "spec"), old or {}
    name = "infrastructureProviderStatus"
    return WorkerPlan(
        pools=_pools(new),
        region=str(spec.get("region") or ""),
        infrastructure=map_at(spec, name) or map_at(before, "spec", name),
        status=map_at(new, "status", "providerStatus")
        or map_at(before, "status", "providerStatus"),
        cluster=cluster,
        shoot=cluster.shoot,
        namespace=Key.of(new).namespace,
        secret=map_at(spec, "secretRef"),
    )


def _pools(worker: JsonObject) -> list[Pool[WorkerConfig]]:
    pools: dict[str, Pool[WorkerConfig]] = {}
    for index, pool in enumerate(pools_of(AwsWorker(), worker)):
        if pool.name in pools:
            raise configuration_problem(
                f'spec.pools[{index}].name: there are two pools "{pool.name}"'
            )
        pools[pool.name] = replace(pool, written=_as_written(pool))
    return [*pools.values()]


def _with_bytes(
    old: Pool[WorkerConfig], new: Pool[WorkerConfig], written: bytes | None
) -> tuple[Pool[WorkerConfig], Pool[WorkerConfig]]:
    """Return both with the bytes of the API server, which writes numbers in its own way."""
    if written is None or not hashes_written(old):
        return old, new
    if hashes_written(new) and new.raw.get(_CONFIG) == old.raw.get(_CONFIG):
        new = replace(new, written=written)
    return replace(old, written=written), new


def _as_written(pool: Pool[WorkerConfig]) -> bytes:
    """Return the config of a pool as an API server returns it."""
    config = pool.raw.get(_CONFIG)
    if config is None or not hashes_written(pool):
        return b""
    text = orjson.dumps(config, option=orjson.OPT_SORT_KEYS).decode()
    for character in _ESCAPED:
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode()
