"""Which webhooks a configuration serves, with which certificate, and how they are registered."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

from pergola.admission.certificates import Certificates, ServingError
from pergola.admission.configurations import Endpoint as Address
from pergola.admission.configurations import by_service, by_url, configurations
from pergola.admission.http import Endpoint
from pergola.admission.protocol import Reviewer
from pergola.admission.registration import Registration
from pergola.admission.self_signed import SelfSigned
from pergola.admission.server import dials, serve
from pergola.api.objects import JsonObject, Key
from pergola.api.resource_manager_config import ResourceManagerConfiguration
from pergola.pki import Plan
from pergola.resource_manager.assembly import Clusters
from pergola.resource_manager.controllers.high_availability_retrigger import (
    Settings,
    high_availability_retrigger,
)
from pergola.resource_manager.webhooks.catalog import (
    Surroundings,
    handlers,
    high_availability,
    registrations,
    webhooks,
)
from pergola.resource_manager.webhooks.deletion_events import DeletionEvents
from pergola.resource_manager.webhooks.high_availability_config.settings import Version
from pergola.resource_manager.webhooks.installation import Installation
from pergola.resource_manager.webhooks.lookups import ClusterLookups
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
_REPORTER: Final = "deletion-protection-controller"


class WebhookServing:
    """The webhooks of one process.

    Args:
        version: of the target's Kubernetes, by which some rules are chosen; None if not known.
        hvpa: whether the target serves Hvpas.

    Attributes:
        units: what every replica runs beside the server.
    """

    def __init__(
        self,
        config: ResourceManagerConfiguration,
        clusters: Clusters,
        metrics: Metrics,
        version: Version | None = None,
        *,
        hvpa: bool = False,
    ) -> None:
        self._server = config.server.webhooks
        self._metrics = metrics
        self._clusters = clusters
        self.installation = replace(installation_of(config), hvpa=hvpa)
        lookups = ClusterLookups(
            clusters.target,
            namespaces=clusters.target_namespaces,
            system_nodes=config.webhooks.system_components_config.node_selector,
            accounts=config.webhooks.projected_token_mount.enabled,
            nodes=config.webhooks.system_components_config.enabled,
            availability=config.webhooks.high_availability_config.enabled,
        )
        recorder = Recorder(clusters.target, _REPORTER)
        around = Surroundings(
            self.installation,
            lookups,
            DeletionEvents(recorder, clusters.target.get),
            version=version,
        )
        found = webhooks(config.webhooks, around)
        self._registrations = registrations(found)
        self._endpoints: dict[str, Endpoint] = {
            path: Reviewer(path, handler, metrics.webhook(path))
            for path, handler in handlers(found).items()
        }
        self._endpoints |= _authorizer(config, clusters)
        self.units: list[Unit] = []
        if self._endpoints:
            self.units.append(Unit(caches=lookups.caches, tasks=[recorder.run]))
        self._own: SelfSigned | None = None
        self._retriggers = self._retrigger(config, around, lookups)
        self.port = 0

    @property
    def is_needed(self) -> bool:
        """Whether any webhook is switched on."""
        return bool(self._endpoints)

    def leading(self) -> list[Unit]:
        """What the leader runs: renewal and registration where they are ours, and asking again."""
        own = [self._own.leading(self._metrics)] if self._own else []
        return [*own, *self._retriggers()]

    @asynccontextmanager
    async def served(self) -> AsyncGenerator[None]:
        """Serves until the end of the block.

        Raises:
            ServingError: the certificate cannot be used.
            ListenError: the port cannot be had.
            KubeError: our own certificate cannot be kept in its Secret.
        """
        async with AsyncExitStack() as stack:
            if self._server.self_signed.enabled:
                directory = Path(stack.enter_context(TemporaryDirectory(prefix="pergola-tls-")))
                self._own = self._self_signed(directory)
                await self._own.prepare()
                self.units.append(self._own.serving())
            else:
                directory = Path(self._mounted())
            client_ca = self._server.tls.client_ca_file
            certificates = Certificates(
                directory, self._metrics.certificates(), Path(client_ca) if client_ca else None
            )
            self.port = await stack.enter_async_context(
                serve(self._server.bind_address, self._server.port, self._endpoints, certificates)
            )
            yield

    async def unregister(self) -> None:
        """Deletes the registration, if it is ours: nothing shall wait for us any more."""
        if self._own:
            await self._own.unregister()

    async def is_ready(self) -> str | None:
        """Why the server cannot be reached; None if it can."""
        if not self.port:
            return "the webhook server has not started yet"
        return await dials(self._server.bind_address or "localhost", self.port)

    def configurations(self, bundle: bytes) -> list[JsonObject]:
        """The webhook configurations, as an API server shall have them."""
        return render(self.installation, self._registrations, self._address(), bundle)

    def _retrigger(
        self, config: ResourceManagerConfiguration, around: Surroundings, lookups: ClusterLookups
    ) -> Callable[[], list[Unit]]:
        def units() -> list[Unit]:
            if not config.webhooks.high_availability_config.enabled:
                return []
            unit = high_availability_retrigger(
                self._clusters.target,
                lookups.availability,
                high_availability(config.webhooks, around),
                Settings(only_managed=self._registers_for_managed_objects()),
                metrics=self._metrics,
            )
            return [unit]

        return units

    def _registers_for_managed_objects(self) -> bool:
        """Whether the API server asks about our objects only; unknown if another one registers."""
        return self._server.self_signed.enabled and self.installation.kind == "target"

    def _mounted(self) -> str:
        directory = self._server.tls.server_cert_dir
        if not directory:
            raise ServingError(
                "webhooks are switched on, but there is no certificate: set "
                "server.webhooks.tls.serverCertDir, or server.webhooks.selfSigned.enabled"
            )
        return directory

    def _self_signed(self, directory: Path) -> SelfSigned:
        name, namespace = self.installation.name, self.installation.namespace
        return SelfSigned(
            self._clusters.target,
            Key(namespace, f"{name}-server"),
            Plan(f"{name}-server"[:60], hosts_of(self.installation, self._server.self_signed.url)),
            name=configuration_name(self.installation),
            render=self.configurations,
            directory=directory,
        )

    def _address(self) -> Address:
        url = self._server.self_signed.url
        if url:
            parts = urlsplit(url)
            return by_url(url if parts.port else f"{url.rstrip('/')}:{self.port}")
        return by_service(self.installation.name, self.installation.namespace)


def installation_of(config: ResourceManagerConfiguration) -> Installation:
    """Return where a process with this configuration is installed.

    The original's configuration does not say so: a second cluster means that the webhooks are
    registered there.
    """
    own = config.server.webhooks.self_signed
    kind = own.installation
    if not own.enabled and config.target_client_connection is not None:
        kind = "target"
    return Installation(kind, own.prefix, own.namespace)


def configuration_name(installation: Installation) -> str:
    """The name of an installation's webhook configurations (spec 12 §2.1)."""
    suffix = "-shoot" if installation.kind == "target" else ""
    return f"{installation.name}{suffix}"


def render(
    installation: Installation,
    entries: list[Registration],
    address: Address,
    bundle: bytes,
) -> list[JsonObject]:
    """The webhook configurations of an installation."""
    labels = {"app": installation.name}
    if installation.kind == "runtime":
        labels[EXCLUDED_FROM_REMEDIATION] = "true"
    return configurations(configuration_name(installation), labels, entries, address, bundle)


def hosts_of(installation: Installation, url: str = "") -> tuple[str, ...]:
    """By which names the server is reached (spec 12 §1.4)."""
    name, namespace = installation.name, installation.namespace
    service = f"{name}.{namespace}"
    names = [name, service, f"{service}.svc", f"{service}.svc.cluster.local", "localhost"]
    host = urlsplit(url).hostname
    return tuple(dict.fromkeys([*names, host] if host else names))


def _authorizer(config: ResourceManagerConfiguration, clusters: Clusters) -> Mapping[str, Endpoint]:
    settings = config.webhooks.node_agent_authorizer
    if not settings.enabled:
        return {}
    lookups = AgentLookups(clusters.source, clusters.target, settings.machine_namespace or "")
    authorizer = NodeAgentAuthorizer(lookups, by_selectors=settings.authorize_with_selectors)
    return {AUTHORIZER_PATH: authorizer}
