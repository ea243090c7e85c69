"""The controllers of ManagedResources, for a source and a target cluster.

The process around them is `pergola.resource_manager.app`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pergola.kube.client import Client
from pergola.resource_manager.controllers.garbage_collector import (
    Settings as GarbageSettings,
)
from pergola.resource_manager.controllers.garbage_collector import (
    garbage_collector_unit,
)
from pergola.resource_manager.controllers.health import Settings as HealthSettings
from pergola.resource_manager.controllers.health import health_unit
from pergola.resource_manager.controllers.managed_resource.reconcile import (
    Settings as ManagedResourceSettings,
)
from pergola.resource_manager.controllers.managed_resource.unit import managed_resource_unit
from pergola.resource_manager.controllers.secret import Secrets, secret_unit
from pergola.resource_manager.controllers.secret import Settings as SecretSettings
from pergola.resource_manager.responsibility import DEFAULT_CLASS, Responsibility
from pergola.resource_manager.source import Source
from pergola.resource_manager.target import Target
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.unit import Part, Unit
from pergola.runtime.metrics import Metrics
from pergola.runtime.task_group import TaskGroup


@dataclass(frozen=True, slots=True)
class Options:
    """Options of an instance and its controllers.

    Attributes:
        resource_class: the class of ManagedResources that are this instance's.
        cluster_id: of the source, unless it is read from there.
        source_namespaces: only ManagedResources of these; of all if empty.
        target_namespaces: namespaced objects are watched only there; everywhere if empty.
        garbage: None if nothing is collected.
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

    Attributes:
        source: what every replica knows of the source.
        running: what runs as the leader; nothing before `parts` was called.
    """

    def __init__(
        self,
        source: Client,
        target: Client,
        options: Options,
        *,
        metrics: Metrics | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._options = options
        self._target_client = target
        self._metrics = metrics or Metrics()
        self._clock = clock or SystemClock()
        self.source = Source(
            source, Responsibility(options.resource_class), namespaces=options.source_namespaces
        )
        self.target: Target | None = None
        self.running: Sequence[Part] = ()

    def parts(self, cluster_id: str) -> Sequence[Part]:
        """Make what the leader runs; the source must be known completely.

        Args:
            cluster_id: as determined by `pergola.resource_manager.identity`.
        """
        options = self._options
        self.target = Target(
            self._target_client,
            managed_by=options.managed_resource.managed_by,
            namespaces=options.target_namespaces,
        )
        self.running = [self.target, *self._units(self.target, cluster_id)]
        return self.running

    def _units(self, target: Target, cluster_id: str) -> list[Unit]:
        options, source, metrics, clock = self._options, self.source, self._metrics, self._clock
        secrets = Secrets(source, options.secret.mode)
        units = [
            managed_resource_unit(
                source,
                target,
                secrets,
                options.managed_resource,
                cluster_id,
                collects_garbage=options.garbage is not None,
                metrics=metrics,
                clock=clock,
            ),
            health_unit(source, target, options.health, cluster_id, metrics=metrics, clock=clock),
            secret_unit(source, secrets, options.secret, metrics),
        ]
        if options.garbage is not None:
            units.append(
                garbage_collector_unit(
                    self._target_client, options.garbage, metrics=metrics, clock=clock
                )
            )
        return units

    async def control(self, cluster_id: str) -> None:
        """Run the controllers until cancelled; only the leader may."""
        await self.source.synced()
        async with TaskGroup() as group:
            for part in self.parts(cluster_id):
                group.create_task(part.run(), name=part.name)

    async def run(self) -> None:
        """Run everything until cancelled, if there is no other replica."""
        async with TaskGroup() as group:
            group.create_task(self.source.unit.run())
            await self.control(self._options.cluster_id)

    @property
    def is_idle(self) -> bool:
        """Whether no controller has anything to do now."""
        return all(part.is_idle for part in self.running)
