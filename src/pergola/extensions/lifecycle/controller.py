"""The controller of one kind and type of extension resources, and its triggers (spec 40 §2.2)."""

import random
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from pergola.api.kinds import NAMESPACE, SECRET
from pergola.api.objects import JsonObject, Key, finalizers_of, map_at, resource_version_of
from pergola.controllers.condition_metrics import ConditionMetrics
from pergola.extension_api.cluster import CLUSTER, Shoot
from pergola.extension_api.kinds import STOPPED_BY_FAILURE
from pergola.extension_api.predicates import (
    SHOOT_CLASS,
    Predicate,
    Snapshot,
    needs_run,
    snapshot,
)
from pergola.extensions.actuator import Actuator
from pergola.extensions.lifecycle.reconcile import Lifecycle, Settings
from pergola.health.conditions import NOTHING
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.index import Index
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.controller import Workers
from pergola.runtime.controlling.unit import Unit, Watching
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.sharding.scope import EVERYTHING, Scope

_SPARE_SECONDS: Final = 60.0
"""The time of a run in addition to its actuator's, for reading and writing."""


def extension_controller(
    client: Client,
    actuator: Actuator,
    settings: Settings,
    *,
    name: str = "",
    metrics: Metrics,
    scope: Scope = EVERYTHING,
    clock: Clock | None = None,
    random_source: random.Random | None = None,
) -> Unit:
    """Return the controller of the resources of an actuator's kind and type.

    Args:
        name: of the controller; like the kind if empty.
        scope: the resources that this process works on.
    """
    predicate = Predicate(actuator.type, settings.classes, settings.ignore_operation_annotation)
    objects = Cache(
        client, actuator.gvk(), snapshot, labels=scope.labels, random_source=random_source
    )
    metrics.register(ConditionMetrics).follow(
        objects, lambda seen: seen.conditions if predicate.is_responsible(seen) else NOTHING
    )
    lifecycle = Lifecycle(client, actuator, settings, predicate, clock or SystemClock())
    controller = Workers(
        name or actuator.kind.lower(),
        scope.tracked(lifecycle.reconcile, objects),
        workers=settings.max_concurrent,
        metrics=metrics,
        deadline=settings.deadline_of(actuator) + _SPARE_SECONDS,
    )
    scope.repeat(controller.queue)
    beside: list[Watching] = []
    if settings.ignore_operation_annotation and actuator.protects_secret:
        beside.append(_watch_secrets(client, controller, predicate, objects, random_source))
    if settings.ignore_operation_annotation and actuator.follows_namespace:
        names = partial(_names_of, predicate, actuator.cluster_name)
        beside.append(_watch_namespaces(client, controller, Index(objects, names), random_source))
    if SHOOT_CLASS not in (settings.classes or (SHOOT_CLASS,)):
        _Wakes(controller, predicate, objects, None, actuator.cluster_name)
        return Unit(caches=[objects], beside=beside, controllers=[controller])
    stops = actuator.kind in STOPPED_BY_FAILURE
    clusters = Cache(
        client, CLUSTER, lambda it: stops and _has_failed(it), random_source=random_source
    )
    _Wakes(controller, predicate, objects, clusters, actuator.cluster_name)
    return Unit(caches=[objects, clusters], beside=beside, controllers=[controller])


class _Secret(NamedTuple):
    """The facts about a Secret that reveal a change of its content, without reading it."""

    version: str
    finalizers: tuple[str, ...]


def _watch_secrets(
    client: Client,
    controller: Workers[Key],
    predicate: Predicate,
    objects: Cache[Snapshot],
    random_source: random.Random | None,
) -> Cache[_Secret]:
    """Trigger the resources whose Secret changes, if no caller requests that.

    Changes of finalizers do not count: the controller writes them itself.
    """

    def in_use(_: Key, seen: Snapshot) -> list[Key]:
        return [seen.secret] if predicate.is_responsible(seen) else []

    by_secret = Index(objects, in_use)

    def on_secret(change: Change[_Secret]) -> None:
        old, new = change.old, change.new
        if old is None or new is None or old.finalizers != new.finalizers:
            return
        for key in list(by_secret.keys(change.key)):
            controller.queue.add(key)

    secrets = Cache(client, SECRET, _secret, metadata_only=True, random_source=random_source)
    secrets.subscribe(on_secret)
    return secrets


def _names_of(
    predicate: Predicate, cluster_name: Callable[[Key], str], key: Key, seen: Snapshot
) -> list[str]:
    """Return the name of a resource's Cluster if this controller is responsible for it."""
    return [cluster_name(key)] if predicate.is_responsible(seen) else []


def _watch_namespaces(
    client: Client,
    controller: Workers[Key],
    by_namespace: Index[Snapshot, str],
    random_source: random.Random | None,
) -> Cache[str]:
    """Trigger the resources whose namespace appears or changes, if no caller requests that."""

    def on_namespace(change: Change[str]) -> None:
        if change.new is not None:
            for key in list(by_namespace.keys(change.key.name)):
                controller.queue.add(key)

    namespaces = Cache(
        client, NAMESPACE, resource_version_of, metadata_only=True, random_source=random_source
    )
    namespaces.subscribe(on_namespace)
    return namespaces


def _secret(obj: JsonObject) -> _Secret:
    return _Secret(resource_version_of(obj), tuple(finalizers_of(obj)))


class _Wakes:
    """Maps changes of resources and Clusters to the resources that they trigger."""

    def __init__(
        self,
        controller: Workers[Key],
        predicate: Predicate,
        objects: Cache[Snapshot],
        clusters: Cache[bool] | None,
        cluster_name: Callable[[Key], str],
    ) -> None:
        self._queue = controller.queue
        self._predicate = predicate
        self._objects = objects
        self._clusters = clusters
        self._cluster_name = cluster_name
        self._of_cluster = Index(objects, partial(_names_of, predicate, cluster_name))
        objects.subscribe(self._on_object)
        if clusters is not None:
            clusters.subscribe(self._on_cluster)

    def _on_object(self, change: Change[Snapshot]) -> None:
        key, old, new = change.key, change.old, change.new
        if new is None:
            return
        triggers = (
            self._predicate.appeared(new) if old is None else self._predicate.changed(old, new)
        )
        if triggers and not self._has_failed(self._cluster_name(key)):
            self._queue.add(key)

    def _on_cluster(self, change: Change[bool]) -> None:
        """Trigger the resources that wait for the Cluster, or for a failed Shoot."""
        if change.new is None or change.new:
            return
        recovered = change.old is not False
        for key in list(self._of_cluster.keys(change.key.name)):
            seen = self._objects.get(key)
            if seen is None:
                continue
            if self._predicate.ignores_annotation or (recovered and needs_run(seen)):
                self._queue.add(key)

    def _has_failed(self, cluster: str) -> bool:
        if self._clusters is None or not cluster:
            return False
        return self._clusters.get(Key("", cluster)) is True


def _has_failed(cluster: JsonObject) -> bool:
    return Shoot(map_at(cluster, "spec", "shoot")).is_failed
