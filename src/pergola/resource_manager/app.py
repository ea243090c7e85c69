"""The resource manager as a process: configuration, clients, endpoints, leadership, shutdown.

The order of a start is spec 10 §13.1's: configuration, logger, clients, endpoints, caches, leader
election, and only then what the leader does. The process ends with an error when it loses the
leadership, and gracefully within five seconds on SIGTERM or SIGINT.
"""

import asyncio
import os
import socket
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from pergola import __version__
from pergola.admission.certificates import ServingError
from pergola.api.resource_manager_config import (
    ClientConnection,
    ConfigurationInvalid,
    ResourceManagerConfiguration,
    configuration_from,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.errors import KubeError, UnknownKind
from pergola.kube.kubeconfig import ClusterConfig, in_cluster, load
from pergola.kube.yaml import YamlError, parse
from pergola.resource_manager.assembly import Clusters, further_controllers
from pergola.resource_manager.identity import IdentityError, cluster_identity
from pergola.resource_manager.liveness import SyncChecks
from pergola.resource_manager.manager import Options, ResourceManager
from pergola.resource_manager.serving import WebhookServing
from pergola.resource_manager.webhooks.high_availability_config.observe import (
    serves_hvpas,
    version_of,
)
from pergola.resource_manager.webhooks.high_availability_config.settings import Version
from pergola.runtime.logging import configure, get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.endpoints import serve_metrics, serve_probes
from pergola.runtime.process.event_loop import run as run_process
from pergola.runtime.process.leader_election import LeaderElection, LostLeadership
from pergola.runtime.process.listening import ListenError
from pergola.runtime.process.signals import work_until_signalled

log = get_logger("resource-manager")


class StartError(Exception):
    """The process cannot start, or cannot go on; the text says why and what to do."""


def read_configuration(
    path: Path, environ: Mapping[str, str] = os.environ, *, offline: bool = False
) -> tuple[ResourceManagerConfiguration, list[str]]:
    """Return the effective configuration, and warnings about settings without effect.

    Args:
        offline: do not check what only a running process needs.

    Raises:
        StartError: The file cannot be read, is not valid YAML, or breaks rules; all are named.
    """
    try:
        value = parse(path.read_bytes())
    except OSError as error:
        raise StartError(f"cannot read configuration file {path}: {error.strerror}") from None
    except YamlError as error:
        raise StartError(f"configuration file {path} is not valid YAML: {error}") from None
    try:
        config, warnings = configuration_from(
            value,
            source=f"configuration file {path}",
            unchecked=("leaderElection",) if offline else (),
        )
    except ConfigurationInvalid as error:
        raise StartError(str(error)) from None
    if kubeconfig := environ.get("KUBECONFIG"):
        config.source_client_connection.kubeconfig = kubeconfig
    if kubeconfig := environ.get("TARGET_KUBECONFIG"):
        config.target_client_connection = config.target_client_connection or ClientConnection()
        config.target_client_connection.kubeconfig = kubeconfig
    return config, warnings


def run(path: Path, extra_target_namespaces: Sequence[str] = ()) -> None:
    """Runs the process until it is asked to end.

    Raises:
        StartError: it cannot start, or lost what it needs to go on.
    """
    config, warnings = read_configuration(path)
    configure(config.log_level, config.log_format)
    log.info("starting", version=__version__, resource_class=config.controllers.resource_class)
    for warning in warnings:
        log.warning("configuration has no effect", warning=warning)
    run_process(lambda: _run(config, options(config, extra_target_namespaces)))


async def _run(config: ResourceManagerConfiguration, chosen: Options) -> None:
    try:
        await work_until_signalled(_serve(config, chosen))
    except (KubeError, IdentityError, LostLeadership, ListenError, ServingError) as error:
        raise StartError(str(error)) from None


async def _serve(config: ResourceManagerConfiguration, chosen: Options) -> None:
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        clusters = _clusters(config, chosen, stack, metrics)
        webhooks = await _webhooks(config, clusters, metrics)
        election = _election(config, clusters.source)
        leading = clusters.guarded(election.check) if election else clusters
        manager = ResourceManager(
            leading.source,
            leading.target,
            chosen,
            metrics=metrics,
            further=lambda: [
                *further_controllers(config, leading, metrics),
                *webhooks.leading(),
            ],
            serving=webhooks.units,
        )
        await _serve_endpoints(config, stack, manager, webhooks, metrics)
        if webhooks.is_needed:
            await stack.enter_async_context(webhooks.served())
        await _check_api(clusters.source)
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(manager.watch())
            await manager.source.synced()

            async def lead() -> None:
                cluster_id = await cluster_identity(clusters.source, config.controllers.cluster_id)
                log.info("controllers start", cluster_id=cluster_id)
                await manager.control(cluster_id)

            await (election.run(lead) if election else lead())
            watching.cancel()


def _election(config: ResourceManagerConfiguration, source: Client) -> LeaderElection | None:
    election = config.leader_election
    if not election.leader_elect:
        return None
    return LeaderElection(
        source,
        election.resource_namespace,
        election.resource_name,
        f"{socket.gethostname()}_{uuid.uuid4()}",
        lease_duration=election.lease_duration.total_seconds(),
        renew_deadline=election.renew_deadline.total_seconds(),
        retry_period=election.retry_period.total_seconds(),
    )


async def _serve_endpoints(
    config: ResourceManagerConfiguration,
    stack: AsyncExitStack,
    manager: ResourceManager,
    webhooks: WebhookServing,
    metrics: Metrics,
) -> None:
    now = asyncio.get_running_loop().time
    source = SyncChecks(lambda: manager.source.unsynced, now)
    target = SyncChecks(lambda: manager.unsynced, now)
    probes, scrapes = config.server.health_probes, config.server.metrics
    health_port = await stack.enter_async_context(
        serve_probes(
            probes.bind_address,
            probes.port,
            healthz={
                "source-informer-sync": source.healthy,
                "target-informer-sync": target.healthy,
            },
            readyz={
                "source-informer-sync": source.ready,
                "target-informer-sync": target.ready,
                **({"webhook-server": webhooks.is_ready} if webhooks.is_needed else {}),
            },
            notices={"apiserver-healthz": _api_server_check(manager.source.client)},
        )
    )
    metrics_port = await stack.enter_async_context(
        serve_metrics(
            scrapes.bind_address,
            scrapes.port,
            metrics,
            profiling=config.debugging.enable_profiling,
        )
    )
    log.info("endpoints are served", health_port=health_port, metrics_port=metrics_port)


async def _webhooks(
    config: ResourceManagerConfiguration, clusters: Clusters, metrics: Metrics
) -> WebhookServing:
    """The webhooks, after a look at what the target serves where that matters to them."""
    if not config.webhooks.high_availability_config.enabled:
        return WebhookServing(config, clusters, metrics)
    version = await _version(config, clusters)
    hvpa = await serves_hvpas(clusters.target)
    return WebhookServing(config, clusters, metrics, version, hvpa=hvpa)


async def _version(config: ResourceManagerConfiguration, clusters: Clusters) -> Version | None:
    """The version of the target, where rules are chosen by it."""
    if config.webhooks.high_availability_config.profile != "auto":
        return None
    return await version_of(clusters.target)


async def _check_api(source: Client) -> None:
    """Fails early, and with a useful sentence, where nothing could ever work."""
    try:
        await source.resource(MANAGED_RESOURCE)
    except UnknownKind:
        raise StartError(
            "the source cluster does not serve ManagedResources; install their "
            "CustomResourceDefinition with `pergola crds --apply`"
        ) from None


def _api_server_check(client: Client) -> Callable[[], Awaitable[str | None]]:
    async def check() -> str | None:
        try:
            await client.get_raw("/healthz")
        except KubeError as error:
            return str(error)
        return None

    return check


def _clusters(
    config: ResourceManagerConfiguration, chosen: Options, stack: AsyncExitStack, metrics: Metrics
) -> Clusters:
    """Clients of the clusters; without a connection of its own the target is the source."""

    def connect(to: ClusterConfig, connection: ClientConnection) -> Client:
        client = Client.connect(
            to, qps=connection.qps, burst=connection.burst, observe=metrics.client_request
        )
        stack.push_async_callback(client.close)
        return client

    at = cluster_config(config.source_client_connection)
    source = target = connect(at, config.source_client_connection)
    if config.target_client_connection is not None:
        at = cluster_config(config.target_client_connection)
        target = connect(at, config.target_client_connection)
    return Clusters(source, target, chosen.target_namespaces, at.ca)


def cluster_config(connection: ClientConnection) -> ClusterConfig:
    """The cluster of a connection: its kubeconfig, or the one that the process runs in."""
    if connection.kubeconfig:
        return load(connection.kubeconfig, restricted=True)
    return in_cluster()


def options(
    config: ResourceManagerConfiguration, extra_target_namespaces: Sequence[str] = ()
) -> Options:
    """What the controllers need to know of the configuration."""
    controllers = config.controllers
    resources, health = controllers.managed_resources, controllers.health
    collector = controllers.garbage_collector
    target = config.target_client_connection
    return Options(
        resource_class=controllers.resource_class,
        cluster_id=controllers.cluster_id,
        managed_by=resources.managed_by_label_value,
        always_update=resources.always_update,
        sync_period=resources.sync_period.total_seconds(),
        workers=resources.concurrent_syncs,
        health_sync_period=health.sync_period.total_seconds(),
        health_workers=health.concurrent_syncs,
        secret_workers=controllers.secret.concurrent_syncs,
        secret_mode=controllers.secret.mode,
        collects_garbage=collector.enabled,
        garbage_sync_period=collector.sync_period.total_seconds() if collector.sync_period else 0,
        garbage_minimum_age=collector.minimum_age.total_seconds() if collector.minimum_age else 0,
        source_namespaces=tuple(config.source_client_connection.namespaces),
        target_namespaces=(*(target.namespaces if target else ()), *extra_target_namespaces),
    )
