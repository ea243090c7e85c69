"""The operator as a process: `pergola operator`."""

import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

from pergola import __version__
from pergola.api.kinds import SECRET
from pergola.api.operator_config import OperatorConfiguration
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN
from pergola.charts import Blobs, Helm
from pergola.controllers.condition_metrics import ConditionMetrics, of_packed
from pergola.garden.landscape import NAMESPACE, WebhookConfigurations
from pergola.kube.client import Client
from pergola.operator.care import Settings as CareSettings
from pergola.operator.care import garden_care, probe
from pergola.operator.configuration import process_options, read_configuration, runtime_cluster
from pergola.operator.copies import Copies
from pergola.operator.extension.units import Environment, extension_units
from pergola.operator.gardenlet import unit as gardenlet
from pergola.operator.gardenlet.values import Inherited
from pergola.operator.reconcile.controller import garden_unit
from pergola.operator.reconcile.reconcile import Settings
from pergola.operator.reconcile.status import Operator
from pergola.operator.references import protected_references
from pergola.operator.registered import for_garden, for_virtual_cluster
from pergola.operator.registrar import Registrar
from pergola.operator.rotation.metrics import CredentialAges, RotationPhases
from pergola.operator.serving import WebhookServing
from pergola.operator.start_checks import check_version, runtime_version
from pergola.operator.template import gardener_version, images, template
from pergola.operator.virtual_cluster import Reach, VirtualCluster
from pergola.operator.webhooks.catalog import Dependencies
from pergola.operator.webhooks.lookups import ClusterLookups
from pergola.runtime.clock import SystemClock
from pergola.runtime.logging import configure, get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.process import application
from pergola.runtime.process.application import Application, Probes
from pergola.runtime.process.options import StartError, replica_identity

log = get_logger("operator")

ANY_VERSION: Final = "EXPERIMENTAL_DISABLE_KUBERNETES_VERSION_CHECK"
"""The environment variable that permits unsupported versions of Kubernetes if it is `true`."""
WEBHOOK_MODE: Final = "WEBHOOK_MODE"
"""`service`, or `url` if the API server cannot reach the Service, as in local runs."""
WEBHOOK_URL: Final = "WEBHOOK_URL"
"""The host or URL at which the API server reaches the webhooks in mode `url`."""

_MODES: Final = ("", "service", "url")


def run(path: Path, webhook_configurations: WebhookConfigurations) -> None:
    """Run the process until it receives SIGTERM or SIGINT.

    Args:
        path: The configuration file.
        webhook_configurations: Declared by the resource manager; see `Landscape`.

    Raises:
        StartError: It cannot start.
        Exception: It cannot continue.
    """
    config = read_configuration(path)
    configure(config.log_level, config.log_format)
    log.info("starting", version=__version__)
    application.run(lambda: serve(config, webhook_configurations), "pergola-operator")


async def serve(
    config: OperatorConfiguration,
    webhook_configurations: WebhookConfigurations,
    environment: Mapping[str, str] = os.environ,
    *,
    reach: Reach | None = None,
    metrics: Metrics | None = None,
) -> None:
    """Serve endpoints and webhooks and, as the leader, reconcile the Garden, until cancelled.

    Args:
        reach: Modifies how the virtual cluster's API server is reached.
        metrics: Where to count; new metrics by default.

    Raises:
        StartError: It cannot start.
        KubeError: The runtime cluster refused, or does not answer.
    """
    metrics = metrics or Metrics()
    connection = config.runtime_client_connection
    cluster = runtime_cluster(config)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            Client.connect(
                cluster,
                qps=connection.qps,
                burst=connection.burst,
                observe=metrics.client_request,
            )
        )
        settings = await _settings(config, client, webhook_configurations, environment)
        app = Application(client, process_options(config), metrics=metrics)
        guarded = app.guarded(client)
        copies = Copies(guarded)
        own = config.virtual_client_connection
        virtual = await stack.enter_async_context(
            VirtualCluster(
                copies.client,
                qps=own.qps,
                burst=own.burst,
                reach=reach,
                observe=metrics.client_request,
            )
        )
        workers = config.controllers.garden.concurrent_syncs
        garden = garden_unit(copies, virtual, settings, metrics=metrics, workers=workers)
        care = garden_care(
            copies,
            partial(probe, virtual),
            settings.template,
            CareSettings.of(config),
            metrics=metrics,
        )
        helm, blobs = Helm.of(environment), Blobs.of(environment)
        gardenlets = gardenlet.Environment(
            copies=copies,
            helm=helm,
            blobs=blobs,
            inherited=Inherited.of(images(environment), settings.operator.version, environment),
            metrics=metrics,
        )
        registrar = Registrar(
            copies,
            virtual,
            for_garden(config, copies, virtual, cluster.server, metrics),
            for_virtual_cluster(config, gardenlets),
        )
        references = protected_references(copies, metrics=metrics)
        metrics.register(CredentialAges).follow(copies.of(SECRET, NAMESPACE))
        metrics.register(RotationPhases).follow(copies.of(GARDEN))
        for kind in (GARDEN, EXTENSION):
            metrics.register(ConditionMetrics).follow(copies.of(kind), of_packed)
        extensions = extension_units(
            config,
            Environment(
                copies=copies,
                virtual=virtual,
                template=settings.template,
                helm=helm,
                blobs=blobs,
                metrics=metrics,
            ),
        )
        await app.serve(
            webhooks=_webhooks(config, client, metrics, environment),
            leading=[copies.unit, garden, care, references, *extensions, registrar],
            probes=_probes(app),
        )


async def _settings(
    config: OperatorConfiguration,
    client: Client,
    webhook_configurations: WebhookConfigurations,
    environment: Mapping[str, str],
) -> Settings:
    any_version = environment.get(ANY_VERSION) == "true"
    runtime = await runtime_version(client, any_version=any_version)
    vector = images(environment)
    version = gardener_version(vector)
    await check_version(client, version)
    log.info("versions", kubernetes=runtime, gardener=version)
    identity = replica_identity()
    return Settings(
        template=template(config, vector, runtime, webhook_configurations),
        operator=Operator(id=identity, name=identity.partition("_")[0], version=version),
        sync_period=config.controllers.garden.sync_period.total_seconds(),
        any_version=any_version,
    )


def _webhooks(
    config: OperatorConfiguration,
    client: Client,
    metrics: Metrics,
    environment: Mapping[str, str],
) -> WebhookServing:
    dependencies = Dependencies(
        ClusterLookups(client), SystemClock(), any_version=environment.get(ANY_VERSION) == "true"
    )
    return WebhookServing(config, client, dependencies, metrics, url=webhook_url(environment))


def webhook_url(environment: Mapping[str, str]) -> str:
    """Return the URL at which the API server reaches the webhooks; empty for the Service.

    Raises:
        StartError: The mode is unknown, or lacks its URL.
    """
    mode, url = environment.get(WEBHOOK_MODE, ""), environment.get(WEBHOOK_URL, "")
    if mode not in _MODES:
        raise StartError(f'{WEBHOOK_MODE} is "{mode}"; write service or url')
    if mode != "url":
        return ""
    if not url:
        raise StartError(f"{WEBHOOK_MODE} is url, so {WEBHOOK_URL} must name the host")
    return url if "://" in url else f"https://{url}"


def _probes(app: Application) -> Probes:
    def synced() -> str | None:
        return "; ".join(map(str, app.unsynced())) or None

    return Probes(
        healthz={"ping": lambda: None, "informer-sync": synced}, readyz={"informer-sync": synced}
    )
