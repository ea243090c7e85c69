"""Webhooks registered inside Shoots, by a ManagedResource for each Shoot (spec 40 §6.5).

An actuator writes the ManagedResource when it reconciles. After a renewal of the authority, this
controller updates all Shoots at once: otherwise they would not trust the new certificate until they
are reconciled for another reason.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from pergola.admission.configurations import Endpoint, configurations
from pergola.admission.self_signed import read_identity
from pergola.admission.webhook import Webhook
from pergola.api.kinds import NAMESPACE, SECRET
from pergola.api.objects import (
    JsonObject,
    Key,
    deletion_timestamp_of,
    labels_of,
    map_at,
    name_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle import Bundle, Registry, build, update
from pergola.bundle.managed_resource import secret_names
from pergola.extensions.webhooks.declare import LABELS, configuration_name
from pergola.kube.client import Client
from pergola.kube.selectors import select_name
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.controller import DONE, Outcome, Workers
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics

CONTROLLER: Final = "shoot-webhooks"

Render = Callable[[bytes], list[JsonObject]]
"""Returns the webhook configurations for a Shoot, given the trusted authorities as PEM."""


class _Kept(NamedTuple):
    """The cached facts about a ManagedResource with webhooks."""

    secrets: frozenset[str]
    is_deleting: bool


def shoot_configurations(
    component: str, webhooks: Iterable[Webhook], endpoint: Endpoint, bundle: bytes
) -> list[JsonObject]:
    """Return the webhook configurations for a Shoot; the same bytes for the same arguments.

    Args:
        bundle: the certificates that the Shoot's API server must trust, PEM.
    """
    entries = [webhook.registration for webhook in webhooks if webhook.of_shoots]
    name = f"{configuration_name(component)}-shoot"
    return configurations(name, LABELS, entries, endpoint, bundle)


def shoot_registration(
    client: Client,
    secret: Key,
    managed_resource: str,
    render: Render,
    *,
    namespaces: Mapping[str, str],
    name: str = CONTROLLER,
    metrics: Metrics,
    clock: Clock | None = None,
) -> Unit:
    """Return the controller that updates the ManagedResources of a name.

    It updates existing ones, but never creates or deletes any.

    Args:
        secret: holds the identity of the webhook server.
        managed_resource: contains the output of `render`, and nothing else.
        namespaces: the labels of the namespaces with those of this extension; all if empty.
        name: the name of the controller.
    """
    found = _ShootRegistration(
        client, secret, managed_resource, render, namespaces, name, metrics, clock
    )
    return Unit(caches=[found.identities, found.resources], controllers=[found.controller])


class _ShootRegistration:
    def __init__(
        self,
        client: Client,
        secret: Key,
        managed_resource: str,
        render: Render,
        namespaces: Mapping[str, str],
        controller: str,
        metrics: Metrics,
        clock: Clock | None,
    ) -> None:
        self._client = client
        self._secret = secret
        self._name = managed_resource
        self._render = render
        self._namespaces = namespaces
        self._clock = clock
        self._desired: tuple[bytes, frozenset[str]] = (b"", frozenset())
        self.controller: Workers[Key] = Workers(
            controller, self.reconcile, workers=2, metrics=metrics, deadline=60.0
        )
        self.identities = Cache(
            client, SECRET, _bundle_of, namespace=secret.namespace,
            fields=select_name(secret.name),
        )  # fmt: skip
        self.resources = Cache(client, MANAGED_RESOURCE, self._keep)
        self.identities.subscribe(self._renewed)
        self.resources.subscribe(self._changed)

    async def reconcile(self, key: Key) -> Outcome:
        """Update one ManagedResource of this extension; send no request if it is up to date."""
        kept, trusted = self.resources.get(key), self.identities.get(self._secret)
        if kept is None or kept.is_deleting or not trusted:
            return DONE
        if kept.secrets == self._names_for(trusted):
            return DONE
        if self._namespaces and not await self._is_own(key.namespace):
            return DONE
        live = await self._client.find(MANAGED_RESOURCE, key)
        if live is not None and deletion_timestamp_of(live) is None:
            await update(self._client, self._rebuilt(live, trusted), clock=self._clock)
        return DONE

    async def _is_own(self, namespace: str) -> bool:
        """Return whether a namespace belongs to a Shoot of this extension."""
        found = await self._client.find(NAMESPACE, Key("", namespace), metadata_only=True)
        return found is not None and self._namespaces.items() <= labels_of(found).items()

    def _names_for(self, trusted: bytes) -> frozenset[str]:
        """Return the names of the Secrets, which depend only on the content."""
        if self._desired[0] != trusted:
            names = secret_names(self._built("default", trusted).managed_resource)
            self._desired = (trusted, frozenset(names))
        return self._desired[1]

    def _rebuilt(self, live: JsonObject, trusted: bytes) -> Bundle:
        """Replace the Secrets, keeping the other options of the ManagedResource."""
        built = self._built(Key.of(live).namespace, trusted)
        references = built.managed_resource["spec"]["secretRefs"]
        spec = {**map_at(live, "spec"), "secretRefs": references}
        return Bundle({**built.managed_resource, "spec": spec}, built.secrets)

    def _built(self, namespace: str, trusted: bytes) -> Bundle:
        return build(namespace, self._name, Registry(*self._render(trusted)))

    def _renewed(self, _: Change[bytes]) -> None:
        for key, kept in self.resources.items():
            if kept is not None:
                self.controller.queue.add(key)

    def _changed(self, change: Change[_Kept | None]) -> None:
        if change.new is not None and change.new != change.old:
            self.controller.queue.add(change.key)

    def _keep(self, obj: JsonObject) -> _Kept | None:
        if name_of(obj) != self._name:
            return None
        return _Kept(frozenset(secret_names(obj)), deletion_timestamp_of(obj) is not None)


def _bundle_of(secret: JsonObject) -> bytes:
    identity = read_identity(secret)
    return identity.bundle if identity else b""
