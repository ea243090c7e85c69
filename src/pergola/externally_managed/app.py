"""The external manager as a process: `pergola infra-manager`."""

import asyncio
import socket
import uuid
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

from pergola import __version__
from pergola.api.objects import GroupKind
from pergola.cloud.aws.metrics import AwsMetrics
from pergola.externally_managed.aws import AWS, AWS_CLUSTER, AwsSettings, AwsSource
from pergola.externally_managed.contract import ContractError
from pergola.externally_managed.kinds import managed_kind
from pergola.externally_managed.manager import Settings, external_manager
from pergola.externally_managed.ready_by_hand import ready_by_hand
from pergola.externally_managed.sources import PlainSource, Source
from pergola.kube.client import Client
from pergola.kube.errors import KubeError
from pergola.kube.kubeconfig import ClusterConfig
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.endpoints import serve_metrics, serve_probes
from pergola.runtime.process.event_loop import run as run_process
from pergola.runtime.process.leader_election import LeaderElection, LostLeadership
from pergola.runtime.process.listening import ListenError
from pergola.runtime.process.signals import work_until_signalled

log = get_logger("infra-manager")

LEASE: Final = "pergola-infra-manager"


class StartError(Exception):
    """The process cannot start, or cannot go on; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Options:
    """How the process runs.

    Attributes:
        kinds: the InfraClusters that it looks after.
        marks_ready: whether InfraClusters may be declared ready by their annotation.
        aws: who asks AWS for the networks of AWSClusters.
        lease_namespace: where replicas agree on a leader; empty where there is but one.
        bind: the address of the endpoints; empty for all.
    """

    kinds: tuple[GroupKind, ...]
    settings: Settings = field(default_factory=Settings)
    marks_ready: bool = True
    aws: AwsSettings = field(default_factory=AwsSettings)
    lease_namespace: str = ""
    bind: str = ""
    health_port: int = 8081
    metrics_port: int = 8080


def run(config: ClusterConfig, options: Options) -> None:
    """Runs the process until it is asked to end.

    Raises:
        StartError: it cannot start, or lost what it needs to go on.
    """
    log.info("starting", version=__version__, kinds=[str(kind) for kind in options.kinds])
    run_process(lambda: _run(config, options))


async def _run(config: ClusterConfig, options: Options) -> None:
    try:
        await work_until_signalled(serve(config, options))
    except (KubeError, ContractError, LostLeadership, ListenError) as error:
        raise StartError(str(error)) from None


async def serve(config: ClusterConfig, options: Options) -> None:
    """Serves the endpoints and, as the leader, looks after all InfraClusters; until cancelled."""
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            Client.connect(config, observe=metrics.client_request)
        )
        observe = metrics.further(AwsMetrics).request
        aws = await stack.enter_async_context(AwsSource(client, options.aws, observe=observe))
        units = await assemble(client, options, metrics, aws)
        running: list[Unit] = []  # none on a replica that waits for its turn, which is ready too
        await _endpoints(stack, options, running, metrics)

        async def lead() -> None:
            running.extend(units)
            async with asyncio.TaskGroup() as group:
                for unit in units:
                    group.create_task(unit.run())

        if not options.lease_namespace:
            await lead()
            return
        identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        await LeaderElection(client, options.lease_namespace, LEASE, identity).run(lead)


async def assemble(
    client: Client, options: Options, metrics: Metrics, aws: AwsSource | None = None
) -> list[Unit]:
    """The controllers of all kinds; AWSClusters may name AWS as their source where `aws` is given.

    Raises:
        ContractError: a kind is not there, or follows no contract.
    """
    units = []
    for kind in options.kinds:
        managed = await managed_kind(client, kind)
        sources: dict[str, Source] = {"plain": PlainSource(client)}
        if aws is not None and kind == AWS_CLUSTER:
            sources[AWS] = aws
        units.append(external_manager(client, managed, sources, options.settings, metrics=metrics))
        if options.marks_ready:
            units.append(ready_by_hand(client, managed, options.settings, metrics=metrics))
    return units


async def _endpoints(
    stack: AsyncExitStack, options: Options, units: Sequence[Unit], metrics: Metrics
) -> None:
    health = await stack.enter_async_context(
        serve_probes(
            options.bind, options.health_port, healthz={}, readyz={"informer-sync": _synced(units)}
        )
    )
    scrapes = await stack.enter_async_context(
        serve_metrics(options.bind, options.metrics_port, metrics)
    )
    log.info("endpoints are served", health_port=health, metrics_port=scrapes)


def _synced(units: Sequence[Unit]) -> Callable[[], str | None]:
    def check() -> str | None:
        return "; ".join(str(lost) for unit in units for lost in unit.unsynced) or None

    return check
