"""The live objects of machine-controller-manager for one Shoot."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from pergola.api.kinds import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    generation_of,
    labels_of,
    map_at,
    maps_at,
    name_of,
)
from pergola.extension_api.errors import ExtensionError, RequeueAfter
from pergola.extensions.actuator import Context
from pergola.extensions.lifecycle.status import upper_first
from pergola.extensions.workers.deployments import NAME_LABEL
from pergola.kube.client import Client
from pergola.kube.selectors import select_name
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.task_group import TaskGroup, gathered

KINDS: Final = (MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE)
WAIT_SECONDS: Final = 300.0
_WAITING_PERCENT: Final = 50


@dataclass(frozen=True)
class Live:
    """All of them in a namespace.

    Attributes:
        deployments: the MachineDeployments by name.
        sets: the MachineSets.
        machines: the Machines.
    """

    deployments: Mapping[str, JsonObject]
    sets: Sequence[JsonObject] = ()
    machines: Sequence[JsonObject] = ()

    def sets_of(self, deployment: str) -> Iterator[JsonObject]:
        """Yield the MachineSets of a MachineDeployment; a restored one has only a label."""
        for machine_set in self.sets:
            owners = maps_at(machine_set, "metadata", "ownerReferences")
            owned = any(
                (owner.get("kind"), owner.get("name")) == (MACHINE_DEPLOYMENT.kind, deployment)
                for owner in owners
            )
            if owned or (not owners and labels_of(machine_set).get(NAME_LABEL) == deployment):
                yield machine_set

    def filled_sets(self) -> Iterator[JsonObject]:
        """Yield the MachineSets that have Machines, or ask for any."""
        for each in self.sets:
            if map_at(each, "spec").get("replicas") or map_at(each, "status").get("replicas"):
                yield each

    def machines_of(self, machine_sets: Iterable[JsonObject]) -> Iterator[JsonObject]:
        """Yield the Machines that MachineSets own."""
        for machine_set in machine_sets:
            yield from self._owned.get(name_of(machine_set), ())

    @cached_property
    def _owned(self) -> Mapping[str, Sequence[JsonObject]]:
        """The Machines by the names of the MachineSets that own them."""
        found: dict[str, list[JsonObject]] = defaultdict(list)
        for machine in self.machines:
            for owner in maps_at(machine, "metadata", "ownerReferences"):
                if owner.get("kind") == MACHINE_SET.kind:
                    found[str(owner.get("name"))].append(machine)
        return found


class Verdict(NamedTuple):
    """The result of waiting for objects.

    Attributes:
        missing: a sentence about what is not finished; empty if everything is.
        failure: a sentence about what failed; empty if nothing has.
    """

    missing: str = ""
    failure: str = ""

    @property
    def is_good(self) -> bool:
        """Whether everything is finished, and nothing has failed."""
        return not (self.missing or self.failure)

    @property
    def is_final(self) -> bool:
        """Whether it makes no sense to wait any longer."""
        return not self.missing or bool(self.failure)


async def read_live(client: Client, namespace: str, kinds: Sequence[GroupVersionKind]) -> Live:
    """Return the objects of some of the kinds in a namespace."""
    lists = await gathered(client.list(kind, namespace) for kind in kinds)
    return _live(dict(zip(kinds, lists, strict=True)))


async def awaited(
    context: Context,
    judge: Callable[[Live], Verdict],
    kinds: Sequence[GroupVersionKind] = KINDS,
    *,
    worker: JsonObject | None = None,
) -> Verdict:
    """Return the first final verdict about the objects of a namespace.

    Args:
        worker: whose machines are awaited; a change of it ends the wait.

    Returns:
        The last verdict if none is final after five minutes.

    Raises:
        RequeueAfter: the Worker was changed: the next run begins at once.
        KubeError: the API server refused, or did not answer.
    """
    client, namespace = context.client, context.namespace
    verdict = judge(await read_live(client, namespace, kinds))
    if verdict.is_final:
        return verdict
    await context.progress(_WAITING_PERCENT, upper_first(verdict.missing))
    caches = {kind: whole_cache(client, kind, namespace) for kind in kinds}
    beside: list[Cache[JsonObject]] = []
    if worker is not None:
        name = select_name(name_of(worker))
        beside.append(whole_cache(client, GroupVersionKind.of(worker), namespace, fields=name))
    is_changed = False

    def is_final() -> bool:
        nonlocal verdict, is_changed
        current = [obj for cache in beside for _, obj in cache.items()]
        is_changed = any(generation_of(obj) != generation_of(worker or {}) for obj in current)
        if is_changed:
            return True
        found = {kind: [obj for _, obj in cache.items()] for kind, cache in caches.items()}
        verdict = judge(_live(found))
        return verdict.is_final

    await until([*caches.values(), *beside], is_final)
    if is_changed:
        changed = ExtensionError("the Worker was changed while its machines were awaited")
        raise RequeueAfter(0, changed)
    return verdict


async def until(caches: Sequence[Cache[JsonObject]], check: Callable[[], bool]) -> bool:
    """Watch objects until a check of them passes; it runs at first, and after each change.

    Returns:
        Whether it has passed; it has not after five minutes.
    """
    try:
        async with asyncio.timeout(WAIT_SECONDS) as limit:
            await _until(caches, check)
    except TimeoutError:
        if not limit.expired():
            raise
        return False
    return True


async def _until(caches: Sequence[Cache[JsonObject]], check: Callable[[], bool]) -> None:
    changed = asyncio.Event()

    def on_change(change: Change[JsonObject]) -> None:
        changed.set()

    async with TaskGroup() as group:
        for cache in caches:
            cache.subscribe(on_change)
        watches = [group.create_task(cache.run()) for cache in caches]
        for cache in caches:
            await cache.synced()
        while not check():
            await changed.wait()
            changed.clear()
        for task in watches:
            task.cancel()


def _live(objects: Mapping[GroupVersionKind, Sequence[JsonObject]]) -> Live:
    deployments = {name_of(obj): obj for obj in objects.get(MACHINE_DEPLOYMENT, ())}
    return Live(deployments, objects.get(MACHINE_SET, ()), objects.get(MACHINE, ()))


def whole_cache(
    client: Client,
    kind: GroupVersionKind,
    namespace: str,
    *,
    labels: str | None = None,
    fields: str | None = None,
) -> Cache[JsonObject]:
    """Return a cache of the objects of a namespace."""
    return Cache(client, kind, _whole, namespace=namespace, labels=labels, fields=fields)


def class_of(obj: JsonObject) -> str:
    """Return the name of the MachineClass of a Machine, MachineSet or MachineDeployment."""
    spec = map_at(obj, "spec")
    template = map_at(spec, "template", "spec") or spec
    return str(map_at(template, "class").get("name") or "")


def _whole(obj: JsonObject) -> JsonObject:
    return obj
