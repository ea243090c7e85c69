"""Runs the health checks of one kind and type of extension resources (spec 40 §2.6).

Changes of the resource, of its Cluster and of the ManagedResources that are checked run the checks
at once; everything else is found after the sync period. Written is what differs, never the time
alone.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from pergola.api.conditions import get_condition, set_condition
from pergola.api.marks import OPERATION, OPERATION_MIGRATE, OPERATION_WAIT_FOR_STATE
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    generation_of,
    map_at,
    maps_at,
    metadata_of,
    name_of,
    resource_version_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api.cluster import CLUSTER, Cluster, MalformedCluster
from pergola.extension_api.errors import ExtensionError, codes_of
from pergola.extensions.health_checks.aggregate import (
    HIBERNATED,
    Result,
    Said,
    aggregate,
    unable,
)
from pergola.extensions.health_checks.checks import HEALTHY, CheckContext, HealthCheck
from pergola.kube.client import Client
from pergola.kube.errors import KubeError, NotFound
from pergola.kube.patches import same
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.index import Index
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.controller import DONE, Again, Controller, Outcome, ReconcileError
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.retrying import collect_failures

log = get_logger("health-checks")

SHOOT: Final = "shoot"
_AT_REST: Final = (OPERATION_MIGRATE, OPERATION_WAIT_FOR_STATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How checks are run.

    Attributes:
        sync_period: seconds between two looks at a resource, and what one check may take.
        max_concurrent: resources that are checked at the same time.
        classes: of the extension resources.
        conditions_to_remove: types that an earlier version wrote and nobody keeps any more.
    """

    sync_period: float = 30.0
    max_concurrent: int = 5
    classes: tuple[str, ...] = (SHOOT,)
    conditions_to_remove: tuple[str, ...] = ()


class _Surroundings(NamedTuple):
    """What is kept of a Cluster: whether its Shoot sleeps, or why that cannot be told."""

    asleep: bool
    problem: str = ""


def health_controller(
    client: Client,
    gvk: GroupVersionKind,
    of_type: str,
    checks: Sequence[HealthCheck],
    settings: Settings | None = None,
    *,
    metrics: Metrics,
    clock: Clock | None = None,
) -> Unit:
    """The controller of a kind and type, with what it watches."""
    found = _Health(client, gvk, of_type, checks, settings or Settings(), metrics, clock)
    return Unit(caches=found.caches, controllers=[found.controller])


class _Health:
    """Checks resources, and writes what came of it."""

    def __init__(
        self,
        client: Client,
        gvk: GroupVersionKind,
        of_type: str,
        checks: Sequence[HealthCheck],
        settings: Settings,
        metrics: Metrics,
        clock: Clock | None,
    ) -> None:
        self._client = client
        self._gvk = gvk
        self._type = of_type
        self._checks = _by_condition(checks)
        self._names = frozenset(c.managed_resource for c in checks if c.managed_resource)
        self._settings = settings
        self._clock = clock or SystemClock()
        self.controller: Controller[Key] = Controller(
            f"health-check-{gvk.kind.lower()}-{of_type}",
            self.reconcile,
            workers=settings.max_concurrent,
            metrics=metrics,
            deadline=2 * settings.sync_period,
        )
        self._objects = Cache(client, gvk, self._keep)
        self._clusters = Cache(client, CLUSTER, _surroundings)
        self._resources = Cache(client, MANAGED_RESOURCE, self._keep_resource)
        self._neighbours = Index(self._objects, _namespace)
        self._wire()

    @property
    def caches(self) -> list[Cache[JsonObject | None] | Cache[_Surroundings]]:
        """What is watched; ManagedResources only if some check reads one."""
        watched: list[Cache[JsonObject | None] | Cache[_Surroundings]] = [self._objects]
        if SHOOT in self._settings.classes:
            watched.append(self._clusters)
        if self._names:
            watched.append(self._resources)
        return watched

    async def reconcile(self, key: Key) -> Outcome:
        """Checks one resource."""
        obj = self._objects.get(key)
        if obj is None or _is_at_rest(obj):
            return DONE
        asleep = _class_of(obj) == SHOOT and self._is_asleep(key.namespace)
        if asleep is True:
            await self._write(key, obj, dict.fromkeys(self._checks, HIBERNATED))
            return DONE
        if isinstance(asleep, Exception):
            await self._write(key, obj, dict.fromkeys(self._checks, unable(asleep)))
        else:
            await self._write(key, obj, await self._checked(obj))
        return Again(self._settings.sync_period)

    def _is_asleep(self, namespace: str) -> bool | Exception:
        cluster = self._clusters.get(Key("", namespace))
        if cluster is None:
            raise ReconcileError(
                f"there is no Cluster {namespace}: it is written by who creates the resources"
            )
        return ExtensionError(cluster.problem) if cluster.problem else cluster.asleep

    # Checking

    async def _checked(self, obj: JsonObject) -> dict[str, Said]:
        context = self._context(obj)
        async with asyncio.TaskGroup() as group:
            running = {
                kind: [group.create_task(self._result(check, context, obj)) for check in checks]
                for kind, checks in self._checks.items()
            }
        present = maps_at(obj, "status", "conditions")
        return {
            kind: aggregate(
                [task.result() for task in tasks], get_condition(present, kind), context.now
            )
            for kind, tasks in running.items()
        }

    async def _result(self, check: HealthCheck, context: CheckContext, obj: JsonObject) -> Result:
        """Whatever a check raises is its result: the others go on."""
        period = self._settings.sync_period
        limit = asyncio.timeout(period)
        with collect_failures() as failures:
            try:
                if not check.applies(obj):
                    return Result(check.name, HEALTHY)
                async with limit:
                    return Result(check.name, await check.run(context, obj))
            except Exception as error:
                if limit.expired():
                    return Result(check.name, _late(check.name, period, failures.last))
                if not isinstance(error, KubeError | ExtensionError):
                    log.error("check failed", check=check.name, exc_info=error)
                return Result(check.name, error)

    def _context(self, obj: JsonObject) -> CheckContext:
        namespace = Key.of(obj).namespace

        async def cluster() -> Cluster | None:
            if _class_of(obj) != SHOOT:
                return None
            return Cluster.from_object(await self._client.get(CLUSTER, Key("", namespace)))

        return CheckContext(
            read=self._read, cluster=cluster, namespace=namespace, now=self._clock.now()
        )

    async def _read(self, gvk: GroupVersionKind, key: Key) -> JsonObject | None:
        """What is watched is known; all else is asked for, and so is what may be outdated."""
        if gvk == MANAGED_RESOURCE and key.name in self._names and self._resources.is_synced:
            return self._resources.get(key)
        return await self._client.find(gvk, key)

    # Writing

    async def _write(self, key: Key, obj: JsonObject, said: Mapping[str, Said]) -> None:
        """One patch for all conditions, only of the state that was judged."""
        present = maps_at(obj, "status", "conditions")
        wanted = [c for c in present if c.get("type") not in self._settings.conditions_to_remove]
        for kind, what in said.items():
            wanted = set_condition(wanted, kind, now=self._clock.now(), **what._asdict())
        if same([*wanted], [*present]):
            return
        patch = {
            "metadata": {"resourceVersion": resource_version_of(obj)},
            "status": {"conditions": wanted},
        }
        with suppress(NotFound):
            written = await self._client.patch(self._gvk, key, patch, subresource="status")
            self._objects.observe(written)

    # Watching

    def _wire(self) -> None:
        self._objects.subscribe(self._object_changed)
        self._clusters.subscribe(lambda change: self._wake(change.key.name))
        self._resources.subscribe(self._resource_changed)

    def _object_changed(self, change: Change[JsonObject | None]) -> None:
        old, new = change.old, change.new
        if new is None:
            return
        if (
            old is None
            or generation_of(old) != generation_of(new)
            or _has_succeeded(old, new)
            or _is_at_rest(old) != _is_at_rest(new)
        ):
            self.controller.queue.add(change.key)

    def _resource_changed(self, change: Change[JsonObject | None]) -> None:
        if change.old != change.new:
            self._wake(change.key.namespace)

    def _wake(self, namespace: str) -> None:
        for key in self._neighbours.keys(namespace):
            self.controller.queue.add(key)

    # Keeping

    def _keep(self, obj: JsonObject) -> JsonObject | None:
        """What checks may want of a resource; nothing of those that are others' business."""
        is_mine = map_at(obj, "spec").get("type") == self._type
        if not is_mine or _class_of(obj) not in self._settings.classes:
            return None
        metadata = {n: v for n, v in metadata_of(obj).items() if n != "managedFields"}
        status = {n: v for n, v in map_at(obj, "status").items() if n != "state"}
        return {**obj, "metadata": metadata, "status": status}

    def _keep_resource(self, obj: JsonObject) -> JsonObject | None:
        """What says how a ManagedResource is."""
        if name_of(obj) not in self._names:
            return None
        metadata = metadata_of(obj)
        return {
            "apiVersion": obj.get("apiVersion"),
            "kind": obj.get("kind"),
            "metadata": {n: metadata.get(n) for n in ("namespace", "name", "generation")},
            "status": {
                n: v
                for n, v in map_at(obj, "status").items()
                if n in ("observedGeneration", "conditions")
            },
        }


def _by_condition(checks: Sequence[HealthCheck]) -> dict[str, list[HealthCheck]]:
    found: dict[str, list[HealthCheck]] = {}
    for check in checks:
        found.setdefault(check.condition, []).append(check)
    return found


def _late(check: str, seconds: float, cause: Exception | None) -> ExtensionError:
    text = f"{check}: no answer within {seconds:g} seconds"
    if cause is None:
        return ExtensionError(text)
    return ExtensionError(f"{text}; it was retrying: {cause}", *codes_of(cause))


def _surroundings(obj: JsonObject) -> _Surroundings:
    try:
        shoot = Cluster.from_object(obj).shoot
    except MalformedCluster as error:
        return _Surroundings(asleep=False, problem=str(error))
    return _Surroundings(asleep=shoot is not None and shoot.hibernation_enabled)


def _has_succeeded(old: JsonObject, new: JsonObject) -> bool:
    """Whether an operation has just succeeded: conditions must not lag behind its outcome."""
    before, now = (map_at(obj, "status", "lastOperation") for obj in (old, new))
    return now.get("state") == "Succeeded" and now != before


def _is_at_rest(obj: JsonObject) -> bool:
    """Whether nobody may write its status now: it goes, it moves, or it waits for its state."""
    return (
        deletion_timestamp_of(obj) is not None
        or annotations_of(obj).get(OPERATION) in _AT_REST
        or map_at(obj, "status", "lastOperation").get("type") == "Migrate"
    )


def _class_of(obj: JsonObject) -> str:
    return map_at(obj, "spec").get("class") or SHOOT


def _namespace(key: Key, obj: JsonObject | None) -> tuple[str, ...]:
    return () if obj is None else (key.namespace,)
