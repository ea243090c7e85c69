"""The resource manager as a process: `pergola resource-manager`."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from pergola import __version__
from pergola.api.resource_manager_config import ResourceManagerConfiguration
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.errors import KubeError, UnknownKind
from pergola.resource_manager.assembly import Clusters, optional_controllers
from pergola.resource_manager.configuration import (
    options,
    overrides,
    process_options,
    read_configuration,
)
from pergola.resource_manager.connections import connect
from pergola.resource_manager.identity import cluster_identity
from pergola.resource_manager.manager import Options, ResourceManager
from pergola.runtime.controlling.unit import Part
from pergola.runtime.logging import configure, get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.process import application
from pergola.runtime.process.application import Application, Probes, WebhookServer
from pergola.runtime.process.endpoints import Notice
from pergola.runtime.process.liveness import SyncChecks
from pergola.runtime.process.options import StartError

log = get_logger("resource-manager")


def run(path: Path, extra_target_namespaces: Sequence[str] = ()) -> None:
    """Run the process until it receives SIGTERM or SIGINT.

    Raises:
        StartError: it cannot start.
        Exception: it cannot continue.
    """
    config, warnings = read_configuration(path)
    configure(config.log_level, config.log_format)
    log.info("starting", version=__version__, resource_class=config.controllers.resource_class)
    for warning in warnings:
        log.warning("configuration has no effect", warning=warning)
    for variable, kubeconfig in overrides().items():
        log.info("environment overrides configuration", variable=variable, kubeconfig=kubeconfig)
    chosen = options(config, extra_target_namespaces)
    application.run(lambda: serve(config, chosen), "pergola-resource-manager")


async def serve(config: ResourceManagerConfiguration, chosen: Options) -> None:
    """Serve endpoints and webhooks and, as the leader, run the controllers, until cancelled."""
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        clusters = await connect(config, chosen.target_namespaces, stack, metrics)
        await _check_api(clusters.source)
        app = Application(clusters.source, process_options(config), metrics=metrics)
        leader, own = clusters.guarded(app.guarded), clusters.guarded(app.guarded_share)
        manager = ResourceManager(
            own.source,
            own.target,
            chosen,
            shard=app.shard,
            leader=(leader.source, leader.target),
            metrics=metrics,
        )

        async def sharing() -> Sequence[Part]:
            cluster_id = await cluster_identity(clusters.source, chosen.cluster_id)
            log.info("cluster identified", cluster_id=cluster_id)
            return manager.sharing(cluster_id)

        async def leading() -> list[Part]:
            return [*manager.leading(), *optional_controllers(config, leader, metrics)]

        await app.serve(
            parts=[manager.source.unit],
            webhooks=await _webhooks(config, clusters, metrics),
            leading=leading,
            sharing=sharing,
            probes=_probes(app, manager),
        )


def _probes(app: Application, manager: ResourceManager) -> Probes:
    """Return the probes, which depend on the ManagedResources and Secrets of the source only.

    Whatever else cannot be watched is a problem of its controller or of some ManagedResources; it
    is shown as a notice.
    """
    now = asyncio.get_running_loop().time
    own, client = manager.source.unit, manager.source.client
    source = SyncChecks(lambda: own.unsynced, now)
    target = SyncChecks(
        lambda: [lost for part in app.running if part is not own for lost in part.unsynced], now
    )

    async def api_server() -> str | None:
        try:
            await client.get_raw("/healthz")
        except KubeError as error:
            return str(error)
        return None

    return Probes(
        healthz={
            "source-informer-sync": source.healthy,
            "target-informer-sync": Notice(target.healthy),
            "apiserver-healthz": Notice(api_server),
        },
        readyz={
            "source-informer-sync": source.ready,
            "target-informer-sync": Notice(target.ready),
        },
    )


async def _webhooks(
    config: ResourceManagerConfiguration, clusters: Clusters, metrics: Metrics
) -> WebhookServer | None:
    """Return the webhooks, or None if none is enabled; some depend on kinds that the target serves.

    A process that serves none does not import them.
    """
    if not any(each.enabled for each in config.webhooks.switches):
        return None
    from pergola.resource_manager.serving import WebhookServing
    from pergola.resource_manager.webhooks.facts.environment import serves_hvpas, version_of

    settings = config.webhooks.high_availability_config
    if not settings.enabled:
        return WebhookServing(config, clusters, metrics)
    version = await version_of(clusters.target) if settings.profile == "auto" else None
    hvpa = await serves_hvpas(clusters.target)
    return WebhookServing(config, clusters, metrics, version, hvpa=hvpa)


async def _check_api(source: Client) -> None:
    try:
        await source.resource(MANAGED_RESOURCE)
    except UnknownKind:
        raise StartError(
            "the source cluster does not serve ManagedResources; install their "
            "CustomResourceDefinition with `pergola crds --apply`"
        ) from None
