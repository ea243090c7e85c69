"""One process: endpoints, webhooks on every replica, controllers on the leader.

The order of a start (spec 10 §13.1): endpoints, so that the process can be watched while it starts;
the parts of every replica; the webhooks; the first lists; leader election; and only then the parts
of the leader. If a part fails, or leadership is lost, the process ends. A process that is
a shard also works on its share of the objects, while it holds the Lease of the shard.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.runtime.controlling.unit import Part, Unsynced
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.endpoints import Check, Notice, serve_metrics, serve_probes
from pergola.runtime.process.leader_election import LeaderElection
from pergola.runtime.process.lease_watch import follow
from pergola.runtime.process.options import ProcessOptions, replica_identity
from pergola.runtime.process.sharding.shard import Shard
from pergola.runtime.process.signals import work_until_signalled
from pergola.runtime.task_group import TaskGroup

log = get_logger("process")


class WebhookServer(Protocol):
    """The interface of webhook servers, which `pergola.admission` implements."""

    @property
    def units(self) -> Sequence[Part]:
        """The parts that every replica runs besides the server; complete once it serves."""
        ...

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to serve."""
        ...

    def served(self) -> AbstractAsyncContextManager[None]:
        """Serve while the block lasts."""
        ...

    def leading(self) -> Sequence[Part]:
        """Return what the leader runs, such as the renewal of certificates."""
        ...

    async def is_ready(self) -> str | None:
        """Return why the server cannot be reached, or None."""
        ...


@dataclass(frozen=True, slots=True)
class Probes:
    """The checks behind a process's probes; see `serve_probes`."""

    healthz: Mapping[str, Check | Notice] = field(default_factory=dict)
    readyz: Mapping[str, Check | Notice] = field(default_factory=dict)


Leading: TypeAlias = Sequence[Part] | Callable[[], Awaitable[Sequence[Part]]]
"""The parts of the leader, or a function that creates them once this process leads."""


class Application:
    """One process.

    Args:
        client: for the cluster that has the Lease.
        options: its endpoints and leader election; by default probes on port 8081, metrics on port
            8080, and no other replica.
        metrics: where its parts count; by default metrics of its own.

    Attributes:
        metrics: what `/metrics` shows.
        shard: this process as a shard; None if the leader works on all objects.
        running: the parts that run now. A replica that waits for leadership runs none of the
            leader's parts, so that it is ready, too.
    """

    def __init__(
        self,
        client: Client,
        options: ProcessOptions | None = None,
        *,
        metrics: Metrics | None = None,
    ) -> None:
        options = options or ProcessOptions()
        self.metrics = metrics or Metrics()
        self.running: list[Part] = []
        self._options = options
        self._election = _election(client, options)
        self.shard = Shard(client, options.sharding) if options.sharding else None

    def guarded(self, client: Client) -> Client:
        """Return a client whose writes are sent only while this process leads."""
        return client.guarded(self._election.check) if self._election else client

    def guarded_share(self, client: Client) -> Client:
        """Return a client whose writes are sent only while this process may work on objects."""
        return self.shard.guarded(client) if self.shard else self.guarded(client)

    def unsynced(self) -> list[Unsynced]:
        """Return the watches that are not live."""
        return [lost for part in self.running for lost in part.unsynced]

    async def serve(
        self,
        *,
        parts: Sequence[Part] = (),
        webhooks: WebhookServer | None = None,
        leading: Leading = (),
        sharing: Leading = (),
        probes: Probes | None = None,
    ) -> None:
        """Work until cancelled.

        Args:
            parts: what every replica runs.
            webhooks: what every replica serves.
            leading: what only the leader runs.
            sharing: what works on objects: on those of the shard, or else only the leader.
            probes: the checks; by default `informer-sync` for readiness.

        Raises:
            LostLeadership, ListenError, KubeError: the process cannot go on.
        """
        if webhooks is not None and not webhooks.is_needed:
            webhooks = None
        async with AsyncExitStack() as stack:
            await self._serve_endpoints(stack, probes or self._default_probes(), webhooks)
            async with TaskGroup() as group:
                tasks = self._start(group, parts)
                if webhooks is not None:
                    await stack.enter_async_context(webhooks.served())
                    tasks += self._start(group, webhooks.units)
                for part in parts:
                    await part.synced()
                await self._work(webhooks, leading, sharing)
                for task in tasks:
                    task.cancel()

    def _start(self, group: TaskGroup, parts: Sequence[Part]) -> list[asyncio.Task[None]]:
        self.running.extend(parts)
        return [group.create_task(part.run(), name=part.name) for part in parts]

    async def _work(
        self, webhooks: WebhookServer | None, leading: Leading, sharing: Leading
    ) -> None:
        if self.shard is None:
            await self._lead(webhooks, sharing, leading)
            return
        async with TaskGroup() as group:
            group.create_task(self.shard.run(lambda: self._control(sharing)), name="shard")
            group.create_task(self._lead(webhooks, leading), name="leader")

    async def _lead(self, webhooks: WebhookServer | None, *work: Leading) -> None:
        async def lead() -> None:
            await self._control(webhooks.leading() if webhooks else (), *work)

        await (self._election.run(lead) if self._election else lead())

    async def _control(self, *work: Leading) -> None:
        parts = [part for each in work for part in (await each() if callable(each) else each)]
        log.info("controllers start", controllers=[part.name for part in parts if part.name])
        async with TaskGroup() as group:
            self._start(group, parts)

    def _default_probes(self) -> Probes:
        def synced() -> str | None:
            return "; ".join(map(str, self.unsynced())) or None

        return Probes(readyz={"informer-sync": synced})

    async def _serve_endpoints(
        self, stack: AsyncExitStack, probes: Probes, webhooks: WebhookServer | None
    ) -> None:
        ports: dict[str, int] = {}
        readyz = dict(probes.readyz)
        if webhooks is not None:
            readyz["webhook-server"] = webhooks.is_ready
        if address := self._options.health:
            ports["health_port"] = await stack.enter_async_context(
                serve_probes(address, probes.healthz, readyz)
            )
        if address := self._options.metrics:
            ports["metrics_port"] = await stack.enter_async_context(
                serve_metrics(address, self.metrics, profiling=self._options.profiling)
            )
        log.info("endpoints are served", **ports)


def _election(client: Client, options: ProcessOptions) -> LeaderElection | None:
    election = options.election
    if election is None:
        return None
    return LeaderElection(
        client,
        election.namespace,
        election.name,
        replica_identity(),
        times=election.times,
        follow=follow(client, Key(election.namespace, election.name)),
    )


def run(serve: Callable[[], Coroutine[None, None, None]], name: str = "pergola") -> None:
    """Run a process until SIGTERM or SIGINT; then it has five seconds to end gracefully.

    Args:
        name: of the process, as traces show it.

    Raises:
        Exception: the error that ended the process, the first one if several did.
    """
    from pergola.runtime.process import event_loop
    from pergola.tracing.export import exported

    with exported(name):
        event_loop.run(lambda: work_until_signalled(serve()))
