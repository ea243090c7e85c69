"""The resource manager's controllers, wired to a source and a target cluster.

The process around it (configuration, probes, leader election) is `pergola.resource_manager.app`.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.resource_manager.controllers.garbage_collector import GarbageCollector
from pergola.resource_manager.controllers.health import Health, health_wakes
from pergola.resource_manager.controllers.managed_resource.apply import Applier
from pergola.resource_manager.controllers.managed_resource.fights import FightLimit
from pergola.resource_manager.controllers.managed_resource.planning import Planner
from pergola.resource_manager.controllers.managed_resource.prune import Pruner
from pergola.resource_manager.controllers.managed_resource.reconcile import (
    ManagedResources,
    Settings,
)
from pergola.resource_manager.controllers.managed_resource.triggers import (
    drifted,
    owners,
    resource_wakes,
    secret_wakes,
)
from pergola.resource_manager.controllers.secret import PROTECT, SecretMode, Secrets
from pergola.resource_manager.responsibility import DEFAULT_CLASS, Responsibility
from pergola.resource_manager.source import SeenResource, SeenSecret, Source
from pergola.resource_manager.target import PodSeen, Target, TargetChange
from pergola.runtime.caching.cache import Change
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.controller import Controller
from pergola.runtime.controlling.unit import Unit, Unsynced
from pergola.runtime.metrics import Metrics

_COLLECT: Final = "target"
_SECRET_DEADLINE: Final = 180.0


@dataclass(frozen=True, slots=True)
class Options:
    """What the configuration says about the controllers; times in seconds."""

    resource_class: str = DEFAULT_CLASS
    cluster_id: str = ""
    managed_by: str = "gardener"
    always_update: bool = False
    sync_period: float = 60.0
    workers: int = 5
    health_sync_period: float = 60.0
    health_workers: int = 5
    secret_workers: int = 5
    secret_mode: SecretMode = PROTECT
    collects_garbage: bool = False
    garbage_sync_period: float = 3600.0
    garbage_minimum_age: float = 600.0
    source_namespaces: tuple[str, ...] = field(default=())
    target_namespaces: tuple[str, ...] = field(default=())


class ResourceManager:
    """All controllers of one instance.

    Args:
        source: the cluster of the ManagedResources.
        target: the cluster of the described objects; may be the same client.
        further: makes the controllers besides those of ManagedResources, whenever they start.
        serving: what runs on every replica, such as the caches that webhooks read.
    """

    def __init__(
        self,
        source: Client,
        target: Client,
        options: Options,
        *,
        metrics: Metrics | None = None,
        clock: Clock | None = None,
        further: Callable[[], Sequence[Unit]] = tuple,
        serving: Sequence[Unit] = (),
    ) -> None:
        self._options = options
        self._further = further
        self._serving = serving
        self._target_client = target
        self._metrics = metrics or Metrics()
        self._clock = clock or SystemClock()
        self.source = Source(
            source, Responsibility(options.resource_class), namespaces=options.source_namespaces
        )
        self.target: Target | None = None
        self.controllers: list[Controller[Key] | Controller[str]] = []
        self.units: Sequence[Unit] = ()

    async def watch(self, started: Callable[[], None] | None = None) -> None:
        """Keeps the source's caches up to date until cancelled; serves every replica."""
        async with asyncio.TaskGroup() as group:
            self.source.start(group)
            for unit in self._serving:
                group.create_task(unit.run())
            await self.source.synced()
            if started is not None:
                started()

    async def control(self, cluster_id: str) -> None:
        """Runs the controllers until cancelled; only the leader may.

        Args:
            cluster_id: as determined by `pergola.resource_manager.identity`.
        """
        await self.source.synced()
        async with asyncio.TaskGroup() as group:
            for run in self._assemble(group, cluster_id):
                group.create_task(run)
            self.units = self._further()
            for unit in self.units:
                group.create_task(unit.run())

    async def run(self) -> None:
        """Both, for those who elect no leader: tests, and a cluster of one's own."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.watch())
            await self.control(self._options.cluster_id)

    @property
    def is_idle(self) -> bool:
        """Whether no controller has anything to do now."""
        return all(controller.queue.is_idle for controller in self.controllers) and all(
            unit.is_idle for unit in self.units
        )

    @property
    def unsynced(self) -> list[Unsynced]:
        """The watches of the target that are not live, each with the reason."""
        lost = self.target.unsynced if self.target else []
        return [*lost, *(kind for unit in (*self._serving, *self.units) for kind in unit.unsynced)]

    def _assemble(
        self, group: asyncio.TaskGroup, cluster_id: str
    ) -> list[Coroutine[None, None, None]]:
        options = self._options
        target = self.target = Target(
            self._target_client,
            group,
            managed_by=options.managed_by,
            namespaces=options.target_namespaces,
        )
        resources, applier = self._managed_resources(target, cluster_id)
        health, looks = self._health(target)
        wiring = _Wiring(self.source, cluster_id, resources, applier, looks, health)
        self.source.subscribe_resources(wiring.on_resource)
        self.source.subscribe_secrets(wiring.on_secret)
        target.subscribe(wiring.on_object)
        target.subscribe_pods(wiring.on_pod)
        self.controllers = [resources, looks, self._secrets()]
        if options.collects_garbage:
            self.controllers.append(self._garbage_collector())
        return [controller.run() for controller in self.controllers]

    def _managed_resources(
        self, target: Target, cluster_id: str
    ) -> tuple[Controller[Key], Applier]:
        options = self._options
        loop = asyncio.get_running_loop()
        applier = Applier(target, FightLimit(loop.time))
        reconciler = ManagedResources(
            self.source,
            target,
            Planner(self.source, target, managed_by=options.managed_by),
            applier,
            Pruner(target, self._clock, options.collects_garbage),
            Settings(cluster_id, options.sync_period, options.always_update),
            self._clock,
        )
        controller = Controller(
            "managedresource",
            reconciler.reconcile,
            workers=options.workers,
            metrics=self._metrics,
            deadline=options.sync_period,
        )
        return controller, applier

    def _health(self, target: Target) -> tuple[Health, Controller[Key]]:
        options = self._options
        health = Health(self.source, target, self._clock, sync_period=options.health_sync_period)
        controller = Controller(
            "health",
            health.reconcile,
            workers=options.health_workers,
            metrics=self._metrics,
            deadline=min(options.health_sync_period, 180.0) / 2,
        )
        return health, controller

    def _secrets(self) -> Controller[Key]:
        secrets = Secrets(self.source, self._options.secret_mode)
        controller = Controller(
            "secret",
            secrets.reconcile,
            workers=self._options.secret_workers,
            metrics=self._metrics,
            deadline=_SECRET_DEADLINE,
        )

        def on_secret(change: Change[SeenSecret]) -> None:
            for key in secrets.woken_by_secret(change):
                controller.queue.add(key)

        def on_resource(change: Change[SeenResource]) -> None:
            for key in secrets.woken_by_resource(change):
                controller.queue.add(key)

        self.source.subscribe_secrets(on_secret)
        self.source.subscribe_resources(on_resource)
        return controller

    def _garbage_collector(self) -> Controller[str]:
        options = self._options
        collector = GarbageCollector(
            self._target_client,
            self._clock,
            sync_period=options.garbage_sync_period,
            namespaces=options.target_namespaces,
            minimum_age=timedelta(seconds=options.garbage_minimum_age),
        )
        controller = Controller(
            "garbage-collector",
            collector.reconcile,
            workers=1,
            metrics=self._metrics,
            deadline=options.garbage_sync_period,
        )
        controller.queue.add(_COLLECT)
        return controller


@dataclass(frozen=True, slots=True)
class _Wiring:
    """Which event wakes which controller."""

    source: Source
    cluster_id: str
    resources: Controller[Key]
    applier: Applier
    looks: Controller[Key]
    health: Health

    def on_resource(self, change: Change[SeenResource]) -> None:
        if resource_wakes(change, self.source.responsibility):
            self.resources.queue.add(change.key)
        if health_wakes(change):
            self.looks.queue.add(change.key)

    def on_secret(self, change: Change[SeenSecret]) -> None:
        for key in secret_wakes(change, self.source):
            self.resources.queue.add(key)

    def on_object(self, event: TargetChange) -> None:
        for key in owners(event, self.cluster_id):
            if drifted(event, self.applier.is_expected):
                self.resources.queue.add(key)
            if event.change.new is None:
                self.health.lost(key, event.gvk, event.change.key)
            if _verdict_changed(event):
                self.looks.queue.add(key)

    def on_pod(self, pod: Key, _: PodSeen) -> None:
        for key in self.health.awaiting_pods(pod.namespace):
            self.looks.queue.add(key)


def _verdict_changed(event: TargetChange) -> bool:
    old, new = event.change.old, event.change.new
    return (
        old is None
        or new is None
        or old.uid != new.uid
        or old.problem != new.problem
        or old.rollout != new.rollout
    )
