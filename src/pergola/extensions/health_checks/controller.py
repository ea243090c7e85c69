"""The health checks of one kind and type of extension resources (spec 40 §2.6).

Changes of the resource, its Cluster and the checked ManagedResources trigger the checks at once;
the sync period catches everything else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pergola.api.marks import OPERATION, OPERATION_MIGRATE, OPERATION_WAIT_FOR_STATE
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    generation_of,
    map_at,
    metadata_of,
    name_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api.cluster import CLUSTER, Cluster, MalformedCluster
from pergola.extension_api.errors import ExtensionError
from pergola.extensions.health_checks.aggregate import HIBERNATED, ConditionUpdate, unable
from pergola.extensions.health_checks.checks import CheckContext, HealthCheck
from pergola.extensions.health_checks.conditions import patch_conditions
from pergola.extensions.health_checks.execution import by_condition, run_checks
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.index import Index
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.controller import DONE, Again, Outcome, ReconcileError, Workers
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.sharding.scope import EVERYTHING, Scope

SHOOT: Final = "shoot"
_AT_REST: Final = (OPERATION_MIGRATE, OPERATION_WAIT_FOR_STATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of health checks.

    Attributes:
        sync_period: the seconds between two runs for a resource, and the time limit of a check.
        max_concurrent: the number of resources to check at once.
        classes: of the extension resources.
        conditions_to_remove: obsolete condition types of an earlier version.
    """

    sync_period: float = 30.0
    max_concurrent: int = 5
    classes: tuple[str, ...] = (SHOOT,)
    conditions_to_remove: tuple[str, ...] = ()


class _ClusterState(NamedTuple):
    """The cached facts about a Cluster: whether its Shoot is hibernated, or why that is unknown."""

    hibernated: bool
    problem: str = ""


def health_controller(
    client: Client,
    gvk: GroupVersionKind,
    of_type: str,
    checks: Sequence[HealthCheck],
    settings: Settings | None = None,
    *,
    metrics: Metrics,
    scope: Scope = EVERYTHING,
    clock: Clock | None = None,
) -> Unit:
    """Return the controller of a kind and type, with its caches.

    Args:
        scope: the resources that this process works on.
    """
    found = _Health(client, gvk, of_type, checks, settings or Settings(), metrics, scope, clock)
    return Unit(caches=found.caches, controllers=[found.controller])


class _Health:
    """Watches resources and the inputs of their checks, and runs the checks."""

    def __init__(
        self,
        client: Client,
        gvk: GroupVersionKind,
        of_type: str,
        checks: Sequence[HealthCheck],
        settings: Settings,
        metrics: Metrics,
        scope: Scope,
        clock: Clock | None,
    ) -> None:
        self._client = client
        self._gvk = gvk
        self._type = of_type
        self._checks = by_condition(checks)
        self._names = frozenset(c.managed_resource for c in checks if c.managed_resource)
        self._settings = settings
        self._clock = clock or SystemClock()
        self._objects = Cache(client, gvk, self._keep, labels=scope.labels)
        self.controller: Workers[Key] = Workers(
            f"health-check-{gvk.kind.lower()}-{of_type}",
            scope.tracked(self.reconcile, self._objects),
            workers=settings.max_concurrent,
            metrics=metrics,
            deadline=2 * settings.sync_period,
        )
        scope.repeat(self.controller.queue)
        self._clusters = Cache(client, CLUSTER, _cluster_state)
        self._resources = Cache(client, MANAGED_RESOURCE, self._keep_resource)
        self._neighbours = Index(self._objects, _namespace)
        self._wire()

    @property
    def caches(self) -> list[Cache[JsonObject | None] | Cache[_ClusterState]]:
        """The caches; ManagedResources are watched only if a check reads one."""
        watched: list[Cache[JsonObject | None] | Cache[_ClusterState]] = [self._objects]
        if SHOOT in self._settings.classes:
            watched.append(self._clusters)
        if self._names:
            watched.append(self._resources)
        return watched

    async def reconcile(self, key: Key) -> Outcome:
        """Check one resource, and write its conditions."""
        obj = self._objects.get(key)
        if obj is None or _is_at_rest(obj):
            return DONE
        period = self._settings.sync_period
        hibernated = _class_of(obj) == SHOOT and self._is_hibernated(key.namespace)
        if hibernated is True:
            await self._write(obj, dict.fromkeys(self._checks, HIBERNATED))
            return DONE
        if isinstance(hibernated, Exception):
            await self._write(obj, dict.fromkeys(self._checks, unable(hibernated)))
        else:
            await self._write(obj, await run_checks(self._checks, obj, self._context(obj), period))
        return Again(period)

    def _is_hibernated(self, namespace: str) -> bool | Exception:
        cluster = self._clusters.get(Key("", namespace))
        if cluster is None:
            raise ReconcileError(
                f"Cluster {namespace} does not exist: the caller of the extension creates it"
            )
        return ExtensionError(cluster.problem) if cluster.problem else cluster.hibernated

    def _context(self, obj: JsonObject) -> CheckContext:
        namespace = Key.of(obj).namespace

        async def cluster() -> Cluster | None:
            if _class_of(obj) != SHOOT:
                return None
            return Cluster.from_object(await self._client.get(CLUSTER, Key("", namespace)))

        return CheckContext(
            client=self._client,
            read=self._read,
            cluster=cluster,
            namespace=namespace,
            now=self._clock.now(),
        )

    async def _read(self, gvk: GroupVersionKind, key: Key) -> JsonObject | None:
        """Read from the cache if it is current, and from the API server otherwise."""
        if gvk == MANAGED_RESOURCE and key.name in self._names and self._resources.is_synced:
            return self._resources.get(key)
        return await self._client.find(gvk, key)

    async def _write(self, obj: JsonObject, updates: Mapping[str, ConditionUpdate]) -> None:
        written = await patch_conditions(
            self._client,
            self._gvk,
            obj,
            updates,
            remove=self._settings.conditions_to_remove,
            now=self._clock.now(),
        )
        if written is not None:
            self._objects.observe(written)

    # Watching

    def _wire(self) -> None:
        self._objects.subscribe(self._object_changed)
        self._clusters.subscribe(lambda change: self._trigger(change.key.name))
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
            self._trigger(change.key.namespace)

    def _trigger(self, namespace: str) -> None:
        for key in self._neighbours.keys(namespace):
            self.controller.queue.add(key)

    # Keeping

    def _keep(self, obj: JsonObject) -> JsonObject | None:
        """Keep what checks may read, or None if another controller owns the resource."""
        is_mine = map_at(obj, "spec").get("type") == self._type
        if not is_mine or _class_of(obj) not in self._settings.classes:
            return None
        metadata = {n: v for n, v in metadata_of(obj).items() if n != "managedFields"}
        status = {n: v for n, v in map_at(obj, "status").items() if n != "state"}
        return {**obj, "metadata": metadata, "status": status}

    def _keep_resource(self, obj: JsonObject) -> JsonObject | None:
        """Keep the conditions of the checked ManagedResources."""
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


def _cluster_state(obj: JsonObject) -> _ClusterState:
    try:
        shoot = Cluster.from_object(obj).shoot
    except MalformedCluster as error:
        return _ClusterState(hibernated=False, problem=str(error))
    return _ClusterState(hibernated=shoot is not None and shoot.hibernation_enabled)


def _has_succeeded(old: JsonObject, new: JsonObject) -> bool:
    """Return whether an operation has just succeeded; conditions must not lag behind it."""
    before, now = (map_at(obj, "status", "lastOperation") for obj in (old, new))
    return now.get("state") == "Succeeded" and now != before


def _is_at_rest(obj: JsonObject) -> bool:
    """Return whether the resource is being deleted, migrated, or waits for its state."""
    return (
        deletion_timestamp_of(obj) is not None
        or annotations_of(obj).get(OPERATION) in _AT_REST
        or map_at(obj, "status", "lastOperation").get("type") == "Migrate"
    )


def _class_of(obj: JsonObject) -> str:
    return map_at(obj, "spec").get("class") or SHOOT


def _namespace(key: Key, obj: JsonObject | None) -> tuple[str, ...]:
    return () if obj is None else (key.namespace,)
