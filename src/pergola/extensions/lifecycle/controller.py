"""The controller of one kind and type of extension resources, and its triggers (spec 40 §2.2)."""

import random
from typing import Final

from pergola.api.objects import JsonObject, Key, map_at
from pergola.extension_api.cluster import CLUSTER, Shoot
from pergola.extension_api.predicates import (
    SHOOT_CLASS,
    Predicate,
    Snapshot,
    needs_run,
    snapshot,
)
from pergola.extensions.actuator import Actuator
from pergola.extensions.lifecycle.reconcile import Lifecycle, Settings
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.index import Index
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.controller import Controller
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics

_SPARE_SECONDS: Final = 60.0
"""The time of a run in addition to its actuator's, for reading and for writing the outcome."""


def extension_controller(
    client: Client,
    actuator: Actuator,
    settings: Settings,
    *,
    name: str = "",
    metrics: Metrics,
    clock: Clock | None = None,
    random_source: random.Random | None = None,
) -> Unit:
    """Return the controller of the resources of an actuator's kind and type.

    Args:
        name: of the controller; like the kind if empty.
    """
    predicate = Predicate(actuator.type, settings.classes, settings.ignore_operation_annotation)
    objects = Cache(client, actuator.gvk(), snapshot, random_source=random_source)
    lifecycle = Lifecycle(client, actuator, settings, predicate, clock or SystemClock())
    controller = Controller(
        name or actuator.kind.lower(),
        lifecycle.reconcile,
        workers=settings.max_concurrent,
        metrics=metrics,
        deadline=settings.deadline + _SPARE_SECONDS,
    )
    if SHOOT_CLASS not in (settings.classes or (SHOOT_CLASS,)):
        _Wakes(controller, predicate, objects, None)
        return Unit(caches=[objects], controllers=[controller])
    clusters = Cache(client, CLUSTER, _is_failed, random_source=random_source)
    _Wakes(controller, predicate, objects, clusters)
    return Unit(caches=[objects, clusters], controllers=[controller])


class _Wakes:
    """Maps changes of resources and Clusters to the resources that they trigger."""

    def __init__(
        self,
        controller: Controller[Key],
        predicate: Predicate,
        objects: Cache[Snapshot],
        clusters: Cache[bool] | None,
    ) -> None:
        self._queue = controller.queue
        self._predicate = predicate
        self._objects = objects
        self._clusters = clusters
        self._in_namespace = Index(objects, self._namespaces)
        objects.subscribe(self._on_object)
        if clusters is not None:
            clusters.subscribe(self._on_cluster)

    def _namespaces(self, key: Key, seen: Snapshot) -> list[str]:
        return [key.namespace] if self._predicate.is_responsible(seen) else []

    def _on_object(self, change: Change[Snapshot]) -> None:
        key, old, new = change.key, change.old, change.new
        if new is None:
            return
        triggers = (
            self._predicate.appeared(new) if old is None else self._predicate.changed(old, new)
        )
        if triggers and not self._has_failed(key.namespace):
            self._queue.add(key)

    def _on_cluster(self, change: Change[bool]) -> None:
        """Trigger the resources that waited for the Cluster, or for a failed Shoot."""
        if change.new is None or change.new:
            return
        recovered = change.old is not False
        for key in list(self._in_namespace.keys(change.key.name)):
            seen = self._objects.get(key)
            if seen is None:
                continue
            if self._predicate.ignores_annotation or (recovered and needs_run(seen)):
                self._queue.add(key)

    def _has_failed(self, namespace: str) -> bool:
        if self._clusters is None:
            return False
        return self._clusters.get(Key("", namespace)) is True


def _is_failed(cluster: JsonObject) -> bool:
    return Shoot(map_at(cluster, "spec", "shoot")).is_failed
