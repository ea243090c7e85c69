"""The controllers of ManagedResources, for a source and a target cluster.

The process around them is `pergola.resource_manager.app`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pergola.controllers.condition_metrics import ConditionMetrics
from pergola.health.conditions import NOTHING, Reported
from pergola.kube.client import Client
from pergola.resource_manager.controllers.garbage_collector import (
    Settings as GarbageSettings,
)
from pergola.resource_manager.controllers.garbage_collector import (
    garbage_collector_unit,
)
from pergola.resource_manager.controllers.health import Settings as HealthSettings
from pergola.resource_manager.controllers.health import health_unit
from pergola.resource_manager.controllers.held_secrets import HeldSecrets
from pergola.resource_manager.controllers.managed_resource.completions import Completions
from pergola.resource_manager.controllers.managed_resource.reconcile import (
    Settings as ManagedResourceSettings,
)
from pergola.resource_manager.controllers.managed_resource.unit import managed_resource_unit
from pergola.resource_manager.controllers.secret import Secrets, secret_unit
from pergola.resource_manager.controllers.secret import Settings as SecretSettings
from pergola.resource_manager.responsibility import DEFAULT_CLASS, Responsibility
from pergola.resource_manager.sharing import drain_unit, everything, origins_here, untracked
from pergola.resource_manager.source import SeenResource, Source
from pergola.resource_manager.target import Target, UnwatchedKinds
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.unit import Part, Unit
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.sharding.ring import Assignment
from pergola.runtime.process.sharding.shard import Shard
from pergola.runtime.task_group import TaskGroup


@dataclass(frozen=True, slots=True)
class Options:
    """Options of an instance and its controllers.

    Attributes:
        resource_class: the class of ManagedResources that this instance handles.
        cluster_id: of the source, unless it is read from there.
        source_namespaces: the namespaces of the ManagedResources to handle; all if empty.
        target_namespaces: the namespaces to watch namespaced objects in; all if empty.
        garbage: None to collect nothing.
    """

    resource_class: str = DEFAULT_CLASS
    cluster_id: str = ""
    source_namespaces: tuple[str, ...] = ()
    target_namespaces: tuple[str, ...] = ()
    managed_resource: ManagedResourceSettings = field(default_factory=ManagedResourceSettings)
    health: HealthSettings = field(default_factory=HealthSettings)
    secret: SecretSettings = field(default_factory=SecretSettings)
    garbage: GarbageSettings | None = None


class ResourceManager:
    """One instance of the resource manager.

    Args:
        source: the cluster of the ManagedResources.
        target: the cluster of the described objects; may be the same client.
        shard: the shard of this process; None if the leader works on all ManagedResources.
        leader: clients for both clusters that write only while this process leads; `source` and
            `target` by default.

    Attributes:
        source: the state of the source that every replica knows.
        running: the running parts; empty before `sharing` or `leading` is called.
    """

    def __init__(
        self,
        source: Client,
        target: Client,
        options: Options,
        *,
        shard: Shard | None = None,
        leader: tuple[Client, Client] | None = None,
        metrics: Metrics | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._options = options
        self._target_client = target
        self._leader = leader or (source, target)
        self._shard = shard
        self._metrics = metrics or Metrics()
        self._clock = clock or SystemClock()
        self._responsibility = Responsibility(options.resource_class)
        self.source = Source(
            source,
            self._responsibility,
            namespaces=options.source_namespaces,
            share=shard.share if shard else None,
        )
        self._metrics.register(ConditionMetrics).follow(self.source.resources, self._conditions)
        self._secrets = Secrets(self.source, options.secret.mode)
        self._completions = Completions()
        self.target: Target | None = None
        self._metrics.registry.register(UnwatchedKinds(lambda: self.target))
        self.running: list[Part] = []

    def _conditions(self, seen: SeenResource) -> Reported:
        """Return the conditions of a ManagedResource, unless another instance reports them."""
        is_mine = self._responsibility.is_responsible(seen.resource_class)
        return seen.conditions if is_mine and seen.assignment is Assignment.HERE else NOTHING

    def sharing(self, cluster_id: str) -> Sequence[Part]:
        """Create the parts that work on ManagedResources; the source must be fully known.

        Args:
            cluster_id: as determined by `pergola.resource_manager.identity`.
        """
        options, source, metrics, clock = self._options, self.source, self._metrics, self._clock
        self.target = target = self._target(cluster_id)
        flights = self._shard.flights(source.is_here) if self._shard else None
        tracked = flights.tracked if flights else untracked
        parts: list[Part] = [
            target,
            managed_resource_unit(
                source,
                target,
                HeldSecrets(source) if self._shard else self._secrets,
                tracked,
                self._completions,
                options.managed_resource,
                cluster_id,
                collects_garbage=options.garbage is not None,
                metrics=metrics,
                clock=clock,
            ),
            health_unit(
                source,
                target,
                tracked,
                self._completions,
                options.health,
                cluster_id,
                metrics=metrics,
                clock=clock,
            ),
        ]
        if self._shard and flights:
            parts.append(drain_unit(source, self._shard.share, flights, metrics))
        self.running += parts
        return parts

    def leading(self) -> Sequence[Part]:
        """Create the parts that only the leader runs, whether or not it is a shard."""
        options, metrics, clock = self._options, self._metrics, self._clock
        parts: list[Part] = [self._secret_unit()]
        if options.garbage is not None:
            parts.append(
                garbage_collector_unit(
                    self._leader[1], options.garbage, metrics=metrics, clock=clock
                )
            )
        self.running += parts
        return parts

    def _target(self, cluster_id: str) -> Target:
        options = self._options
        return Target(
            self._target_client,
            managed_by=options.managed_resource.managed_by,
            namespaces=options.target_namespaces,
            is_here=origins_here(self.source, cluster_id) if self._shard else everything,
        )

    def _secret_unit(self) -> Unit:
        """Return the controller of Secrets; with shards, it watches all ManagedResources itself."""
        options = self._options
        if self._shard is None:
            return secret_unit(self.source, self._secrets, options.secret, self._metrics)
        source = Source(
            self._leader[0],
            self._responsibility,
            namespaces=options.source_namespaces,
            unpacked=True,
        )
        secrets = Secrets(source, options.secret.mode, releases_early=True)
        return secret_unit(
            source, secrets, options.secret, self._metrics, caches=source.unit.caches
        )

    async def control(self, cluster_id: str) -> None:
        """Run the controllers until cancelled; only the leader may call this."""
        await self.source.synced()
        async with TaskGroup() as group:
            for part in (*self.sharing(cluster_id), *self.leading()):
                group.create_task(part.run(), name=part.name)

    async def run(self) -> None:
        """Run everything until cancelled, if there is no other replica."""
        async with TaskGroup() as group:
            group.create_task(self.source.unit.run())
            await self.control(self._options.cluster_id)

    @property
    def is_idle(self) -> bool:
        """Whether no controller has work to do, and no run waits to be recorded."""
        return not self._completions and all(part.is_idle for part in self.running)
