"""The webhooks of one extension process: serving, registration and certificates (spec 40 §7.1).

The process issues its own authority, renewed before its 30 days are over; an old one stays trusted
until it expires. Every replica serves; the leader renews and registers.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from pergola.admission.configurations import configurations
from pergola.admission.self_signed import read_identity
from pergola.admission.serving import Listening, OwnIdentity, WebhookServer
from pergola.admission.webhook import Webhook, endpoints, registrations
from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key
from pergola.extension_api.errors import RequeueAfter
from pergola.extensions.webhooks.declare import LABELS, WebhookError, configuration_name, enabled
from pergola.extensions.webhooks.permissions import certificates_of
from pergola.extensions.webhooks.settings import WebhookSettings
from pergola.extensions.webhooks.shoot_registration import (
    CONTROLLER,
    shoot_configurations,
    shoot_registration,
)
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.pki import Plan
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics

_LONGEST_COMMON_NAME: Final = 60
_SOON: Final = 5.0

ShootWebhooks = Callable[[], Awaitable[Sequence[JsonObject]]]
"""Returns the webhook configurations for a Shoot, with the currently trusted authorities."""


class _InShoots(NamedTuple):
    """Webhooks that are registered in Shoots by one ManagedResource."""

    component: str
    managed_resource: str
    webhooks: Sequence[Webhook]
    namespaces: Mapping[str, str]


class ExtensionWebhooks(WebhookServer):
    """The webhooks of a component.

    Args:
        client: for the cluster whose API server calls them: the seed, or the garden.
        component: such as `networking-cilium` or `admission-calico`.
        webhooks: all webhooks of the component.

    Raises:
        WebhookError: The declarations contradict each other or the settings.
    """

    def __init__(
        self,
        client: Client,
        component: str,
        webhooks: Iterable[Webhook],
        settings: WebhookSettings,
        metrics: Metrics,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._component = component
        declared = list(webhooks)
        self._webhooks = enabled(declared, settings.disabled)
        self._settings = settings
        self._clock = clock
        self._in_shoots: list[_InShoots] = []
        listening = Listening(
            host=settings.host,
            port=settings.port,
            directory=Path(settings.cert_dir) if settings.cert_dir else None,
            client_ca=Path(settings.client_ca) if settings.client_ca else None,
        )
        super().__init__(
            endpoints(self._webhooks, metrics),
            listening,
            metrics,
            self._own_identity(),
        )
        # Without any enabled webhook, the server still removes earlier registrations.
        self.is_needed = bool(declared)

    @property
    def secret(self) -> Key:
        """The Secret that holds the certificates."""
        return Key(self._settings.namespace, certificates_of(self._component))

    def in_shoots(
        self,
        component: str,
        managed_resource: str,
        webhooks: Iterable[Webhook],
        namespaces: Mapping[str, str] | None = None,
    ) -> ShootWebhooks:
        """Register webhooks in Shoots, through a ManagedResource that an actuator writes.

        Args:
            component: names the webhook configurations in the Shoots.
            managed_resource: the name of the ManagedResource, which is kept up to date as
                authorities change.
            webhooks: webhooks that are not for Shoots are ignored.
            namespaces: the labels of namespaces in which the ManagedResource is the component's; in
                others, another extension has one of the same name. All namespaces if empty.

        Returns:
            A function that returns the current webhook configurations. It raises RequeueAfter while
            there are no certificates yet, or a KubeError.
        """
        names = {webhook.registration.name for webhook in webhooks if webhook.of_shoots}
        found = [w for w in self._webhooks if w.registration.name in names]
        group = _InShoots(component, managed_resource, found, namespaces or {})
        if found:
            self._in_shoots.append(group)

        async def configurations_now() -> list[JsonObject]:
            return self._for_shoots(group, await self._bundle())

        return configurations_now

    def leading(self) -> list[Unit]:
        """Return the units that the leader runs: renewal and registration, here and in Shoots."""
        shoots = [self._shoot_registration(group) for group in self._in_shoots]
        return [*super().leading(), *shoots]

    def _shoot_registration(self, group: "_InShoots") -> Unit:
        is_only = len(self._in_shoots) == 1
        return shoot_registration(
            self._client,
            self.secret,
            group.managed_resource,
            partial(self._for_shoots, group),
            namespaces=group.namespaces,
            name=CONTROLLER if is_only else f"{CONTROLLER}-{group.component}",
            metrics=self._metrics,
            clock=self._clock,
        )

    def configurations(self, bundle: bytes) -> list[JsonObject]:
        """Return the webhook configurations for the cluster that the component works on."""
        entries = registrations(self._webhooks)
        name = configuration_name(self._component)
        endpoint = self._settings.endpoint(self._component)
        return configurations(name, LABELS, entries, endpoint, bundle)

    async def _bundle(self) -> bytes:
        try:
            identity = read_identity(await self._client.get(SECRET, self.secret))
        except NotFound:
            identity = None
        if identity is None:
            missing = WebhookError(f"Secret {self.secret} has no webhook certificates yet")
            raise RequeueAfter(_SOON, missing)
        return identity.bundle

    def _for_shoots(self, group: "_InShoots", bundle: bytes) -> list[JsonObject]:
        endpoint = self._settings.shoot_endpoint(self._component)
        return shoot_configurations(group.component, group.webhooks, endpoint, bundle)

    def _own_identity(self) -> OwnIdentity:
        name = configuration_name(self._component)
        hosts = self._settings.hosts(self._component)
        return OwnIdentity(
            client=self._client,
            secret=self.secret,
            plan=Plan(name[:_LONGEST_COMMON_NAME], hosts),
            name=name,
            render=self.configurations,
            owner=self._settings.owner(),
            clock=self._clock,
        )
