"""`pergola aws plan` for a Worker: which machines a change replaces, before it is made."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from pergola.cli.aws.plan_text import Line
from pergola.cli.aws.subject import AwsCheckError, Source, workers_in
from pergola.cli.manifest_files import ManifestFileError, named, of_kind, read_objects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pergola.api.objects import JsonObject
    from pergola.extension_api.cluster import Cluster
    from pergola.providers.aws.workers.pool_changes import PoolChange, Zone

_EXTENSIONS: Final = "extensions.gardener.cloud"
_SIGNS: Final = {
    "create": ("+", "green"),
    "replace": ("~", "yellow"),
    "update in place": ("~", "yellow"),
    "change": ("~", "yellow"),
    "delete": ("-", "red"),
}
_LONGEST: Final = 120
_ABSENT: Final = "absent"


class WorkerChange(NamedTuple):
    """A planned change of a Worker.

    Attributes:
        name: kind, namespace and name.
    """

    name: str
    pools: "Sequence[PoolChange]"

    @property
    def is_empty(self) -> bool:
        """Whether nothing would change."""
        return all(pool.fate == "keep" for pool in self.pools)


async def foreseen(objects: "list[JsonObject]", source: Source, old: str) -> WorkerChange:
    """Compare the Worker of a file with the current one: in a file, or in the cluster.

    Raises:
        ManifestFileError, AwsCheckError: an object is missing, or there are too many.
        ExtensionError: a Worker or its Cluster is wrong.
        KubeError: the current Worker cannot be read.
    """
    from pergola.api.objects import map_at
    from pergola.providers.aws.workers.pool_changes import pool_changes

    worker = _only(workers_in(objects), source.file, objects)
    if map_at(worker, "spec").get("type") != "aws":
        raise AwsCheckError(f"{named(worker)} in {source.file} has another type than aws")
    if old:
        before = read_objects(old)
        current = _only(workers_in(before), old, before)
        cluster = _cluster([*objects, *before], worker, source.file)
        pools = pool_changes(current, worker, cluster, written={}, machines={})
    else:
        pools = await _against_live(worker, objects, source)
    return WorkerChange(named(worker), pools)


async def _against_live(
    worker: "JsonObject", objects: "list[JsonObject]", source: Source
) -> "list[PoolChange]":
    from pergola.api.kinds import MACHINE_DEPLOYMENT
    from pergola.api.objects import Key, metadata_of, name_of, namespace_of
    from pergola.extension_api.cluster import CLUSTER
    from pergola.extension_api.kinds import WORKER
    from pergola.extensions.workers.deployments import current_replicas
    from pergola.extensions.workers.inputs import read_written
    from pergola.kube.errors import UnknownKind
    from pergola.providers.aws.workers.pool_changes import pool_changes

    namespace = namespace_of(worker) or source.chosen_namespace()
    key = Key(namespace, name_of(worker))
    async with source.connect() as client:
        current = await client.find(WORKER, key)
        written = {} if current is None else await read_written(client, current)
        found = await client.find(CLUSTER, Key("", namespace))
        try:
            deployments = await client.list(MACHINE_DEPLOYMENT, namespace)
        except UnknownKind:
            deployments = []
    beside = [*objects, *([found] if found is not None else [])]
    named_worker = {**worker, "metadata": {**metadata_of(worker), "namespace": namespace}}
    return pool_changes(
        current,
        named_worker,
        _cluster(beside, named_worker, source.file),
        written=written,
        machines={name_of(each): current_replicas(each) for each in deployments},
    )


def _only(workers: "list[JsonObject]", file: str, objects: "list[JsonObject]") -> "JsonObject":
    if len(workers) != 1:
        said = ", ".join(map(named, objects)) or "nothing"
        raise ManifestFileError(f"{file} must contain one Worker, but contains {said}")
    return workers[0]


def _cluster(objects: "list[JsonObject]", worker: "JsonObject", file: str) -> "Cluster":
    """Return the Cluster of a Worker: that of the file, before that of the cluster."""
    from pergola.api.objects import name_of, namespace_of
    from pergola.extension_api.cluster import Cluster

    for obj in of_kind(objects, _EXTENSIONS, "Cluster"):
        if name_of(obj) == namespace_of(worker):
            return Cluster.from_object(obj)
    raise AwsCheckError(
        f"there is no Cluster {namespace_of(worker)} with the Shoot of {named(worker)}: add it to "
        f"{file}, or name the seed with --kubeconfig"
    )


def lines(change: WorkerChange, *, everything: bool) -> Iterator[Line]:
    """Yield the plan line by line.

    Args:
        everything: Whether to include pools that stay as they are.
    """
    yield Line(change.name, 0, "bold")
    kept = 0
    for pool in change.pools:
        if pool.fate in _SIGNS or everything:
            yield from _pool(pool)
        else:
            kept += 1
    if kept:
        yield Line(f"of the other pools, {kept} change{'s' * (kept == 1)} nothing", 2, "dim")
    yield Line("")
    if any(pool.fate == "replace" and len(pool.zones) > 1 for pool in change.pools):
        yield Line("the zones of a pool are replaced at the same time, each within its limits")
    counts = Counter(str(pool.fate) for pool in change.pools)
    parts = [f"{counts[fate]} to {fate}" for fate in _SIGNS if counts[fate]]
    yield Line(f"pools: {', '.join(parts)}" if parts else "nothing would change", 0, "bold")


def _pool(pool: "PoolChange") -> Iterator[Line]:
    sign, style = _SIGNS.get(pool.fate, (" ", "dim"))
    yield Line(f"{sign} worker pool {pool.name}: {_what(pool)}", 2, style)
    for change in pool.inputs:
        before, after = map(_shown, (change.old, change.new))
        why = ": gardenlet replaces the machines for it" if change.by_gardenlet else ""
        yield Line(f"{change.field}: {before} → {after}{why}", 6)
    if pool.fields:
        yield Line(f"without replacing a machine: {', '.join(pool.fields)}", 6)
    for zone in pool.zones:
        if pool.fate != "change" or zone.fate != "change" or zone.surplus:
            yield Line(f"{zone.name}: {_in_zone(zone)}", 6)


def _what(pool: "PoolChange") -> str:
    before, after = pool.hashes
    match pool.fate:
        case "create":
            return f"create its machines, with hash {after}"
        case "delete":
            return "delete its machines"
        case "change":
            return "no machine is replaced"
        case "keep":
            return "nothing changes"
    what = "replace all machines" if pool.fate == "replace" else "update all machines in place"
    return what if before == after else f"{what}: the hash changes from {before} to {after}"


def _in_zone(zone: "Zone") -> str:
    from pergola.api.texts import counted

    number = counted(zone.machines, "machine")
    if zone.surplus:
        number += f", {zone.surplus} of them above the zone's new maximum, to delete"
    if zone.fate in ("replace", "update in place"):
        return (
            f"{number}, at most {zone.surge} more and {zone.unavailable} fewer at a time "
            f"({zone.deployment})"
        )
    if zone.fate in ("create", "delete"):
        return f"{number} to {zone.fate} ({zone.deployment})"
    return f"{number} ({zone.deployment})"


def _shown(value: str | None) -> str:
    if value is None:
        return _ABSENT
    return value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…"


def data(change: WorkerChange) -> "JsonObject":
    """Return the plan for programs."""
    return {
        "worker": change.name,
        "pools": [
            {
                "name": pool.name,
                "fate": str(pool.fate),
                "oldHash": pool.hashes[0],
                "newHash": pool.hashes[1],
                "inputs": [
                    {
                        "field": each.field,
                        "old": each.old,
                        "new": each.new,
                        "byGardenlet": each.by_gardenlet,
                    }
                    for each in pool.inputs
                ],
                "fields": [*pool.fields],
                "zones": [
                    {
                        "zone": each.name,
                        "machineDeployment": each.deployment,
                        "fate": str(each.fate),
                        "machines": each.machines,
                        "maxSurge": each.surge,
                        "maxUnavailable": each.unavailable,
                        "surplus": each.surplus,
                    }
                    for each in pool.zones
                ],
            }
            for pool in change.pools
        ],
    }
