"""Serving and registration of the resource manager's webhooks."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from pergola.admission.configurations import Endpoint as Address
from pergola.admission.configurations import configurations, hosts_of, reached_at
from pergola.admission.http import Endpoint
from pergola.admission.owner import Owner
from pergola.admission.registration import Registration
from pergola.admission.serving import Listening, OwnIdentity, WebhookServer, Workers
from pergola.admission.webhook import endpoints, registrations
from pergola.admission.workers import WorkerPool
from pergola.api.objects import JsonObject, Key
from pergola.api.resource_manager_config import ResourceManagerConfiguration
from pergola.pki import Plan
from pergola.resource_manager.assembly import Clusters
from pergola.resource_manager.controllers.high_availability_retrigger import (
    Settings,
    high_availability_retrigger,
)
from pergola.resource_manager.webhooks.catalog import webhooks
from pergola.resource_manager.webhooks.deletion_events import DeletionEvents
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.facts.high_availability import Version
from pergola.resource_manager.webhooks.facts.lookups import ClusterLookups
from pergola.resource_manager.webhooks.high_availability_config.review import high_availability
from pergola.resource_manager.webhooks.installation import Installation
from pergola.resource_manager.webhooks.node_agent_authorizer.lookups import (
    ClusterLookups as AgentLookups,
)
from pergola.resource_manager.webhooks.node_agent_authorizer.protocol import (
    PATH as AUTHORIZER_PATH,
)
from pergola.resource_manager.webhooks.node_agent_authorizer.protocol import NodeAgentAuthorizer
from pergola.runtime.controlling.events import Recorder
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics

EXCLUDED_FROM_REMEDIATION: Final = "remediation.webhook.shoot.gardener.cloud/exclude"
WORKER: Final = "pergola.resource_manager.webhook_worker"
"""The main module of a webhook worker."""
_REPORTER: Final = "deletion-protection-controller"
_LONGEST_COMMON_NAME: Final = 60


class WebhookServing(WebhookServer):
    """The webhooks of one process.

    Args:
        version: the target's Kubernetes version, which selects some rules; None if unknown.
        hvpa: whether the target serves Hvpas.
        at: where a worker serves, with the certificate of its parent process; None for the parent
            itself.
    """

    def __init__(
        self,
        config: ResourceManagerConfiguration,
        clusters: Clusters,
        metrics: Metrics,
        version: Version | None = None,
        *,
        hvpa: bool = False,
        at: Listening | None = None,
    ) -> None:
        self._config = config
        self._target = clusters.target
        self.installation = replace(installation_of(config), hvpa=hvpa)
        self._lookups = _lookups(config, clusters)
        recorder = Recorder(clusters.target, _REPORTER)
        events = DeletionEvents(recorder, clusters.target.get)
        self._dependencies = Dependencies(self.installation, self._lookups, events, version=version)
        found = webhooks(config.webhooks, self._dependencies)
        self._registrations = registrations(found)
        served = {**endpoints(found, metrics), **_authorizer(config, clusters)}
        super().__init__(
            served,
            at or _listening(config),
            metrics,
            None if at else self._own_identity(clusters),
            None if at else _workers(config, clusters, metrics, version, hvpa=hvpa),
        )
        if served:
            self.units.append(Unit(caches=self._lookups.caches, tasks=[recorder.run]))

    def leading(self) -> list[Unit]:
        """Return the units that the leader runs: renewal, registration, and high availability."""
        return [*super().leading(), *self._retrigger()]

    def configurations(self, bundle: bytes) -> list[JsonObject]:
        """Return the webhook configurations.

        Args:
            bundle: the certificates that the API server must trust, PEM.
        """
        return render(self.installation, self._registrations, self._address(), bundle)

    def _retrigger(self) -> list[Unit]:
        config = self._config
        if not config.webhooks.high_availability_config.enabled:
            return []
        # A registration other than our own may also select objects that are not managed.
        own = config.server.webhooks.self_signed.enabled
        unit = high_availability_retrigger(
            self._target,
            self._lookups.availability,
            high_availability(config.webhooks, self._dependencies),
            Settings(only_managed=own and self.installation.kind == "target"),
            metrics=self._metrics,
        )
        return [unit]

    def _own_identity(self, clusters: Clusters) -> OwnIdentity | None:
        own = self._config.server.webhooks.self_signed
        if not own.enabled:
            return None
        name = f"{self.installation.name}-server"
        return OwnIdentity(
            client=clusters.target,
            secret=Key(self.installation.namespace, name),
            plan=Plan(
                name[:_LONGEST_COMMON_NAME],
                hosts_of(self.installation.service, own.url, "localhost"),
            ),
            name=configuration_name(self.installation),
            render=self.configurations,
            owner=Owner.cluster_role(
                own.owner_cluster_role, "server.webhooks.selfSigned.ownerClusterRole"
            ),
        )

    def _address(self) -> Address:
        url = self._config.server.webhooks.self_signed.url
        return reached_at(self.installation.service, url, self.port)


def installation_of(config: ResourceManagerConfiguration) -> Installation:
    """Return where a process with this configuration is installed.

    The original's configuration does not say: a second cluster means that the webhooks are
    registered there.
    """
    own = config.server.webhooks.self_signed
    kind = own.installation
    if not own.enabled and config.target_client_connection is not None:
        kind = "target"
    return Installation(kind, own.prefix, own.namespace, own.garden)


def configuration_name(installation: Installation) -> str:
    """Return the name of an installation's webhook configurations (spec 12 §2.1)."""
    suffix = "-shoot" if installation.kind == "target" else ""
    return f"{installation.name}{suffix}"


def render(
    installation: Installation, entries: list[Registration], address: Address, bundle: bytes
) -> list[JsonObject]:
    """Return the webhook configurations of an installation."""
    labels = {"app": installation.name}
    if installation.kind == "runtime":
        labels[EXCLUDED_FROM_REMEDIATION] = "true"
    return configurations(configuration_name(installation), labels, entries, address, bundle)


def _lookups(config: ResourceManagerConfiguration, clusters: Clusters) -> ClusterLookups:
    settings = config.webhooks
    return ClusterLookups(
        clusters.target,
        namespaces=clusters.target_namespaces,
        system_nodes=settings.system_components_config.node_selector,
        accounts=settings.projected_token_mount.enabled,
        nodes=settings.system_components_config.enabled,
        availability=settings.high_availability_config.enabled,
    )


def _workers(
    config: ResourceManagerConfiguration,
    clusters: Clusters,
    metrics: Metrics,
    version: Version | None,
    *,
    hvpa: bool,
) -> Workers | None:
    number = config.server.webhooks.workers - 1
    if not number:
        return None
    pool = WorkerPool(number, WORKER, metrics)
    return Workers(
        pool,
        lambda at: {
            "configuration": config.to_complete_json(),
            "targetNamespaces": list(clusters.target_namespaces),
            "version": version,
            "hvpa": hvpa,
            "host": at.host,
            "port": at.port,
            "directory": str(at.directory),
            "clientCA": str(at.client_ca) if at.client_ca else None,
        },
    )


def _listening(config: ResourceManagerConfiguration) -> Listening:
    server = config.server.webhooks
    directory, client_ca = server.tls.server_cert_dir, server.tls.client_ca_file
    return Listening(
        host=server.bind_address,
        port=server.port,
        directory=Path(directory) if directory else None,
        client_ca=Path(client_ca) if client_ca else None,
    )


def _authorizer(config: ResourceManagerConfiguration, clusters: Clusters) -> Mapping[str, Endpoint]:
    settings = config.webhooks.node_agent_authorizer
    if not settings.enabled:
        return {}
    lookups = AgentLookups(clusters.source, clusters.target, settings.machine_namespace or "")
    authorizer = NodeAgentAuthorizer(lookups, by_selectors=settings.authorize_with_selectors)
    return {AUTHORIZER_PATH: authorizer}
