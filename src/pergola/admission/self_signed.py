"""A webhook server's own certificate authority, kept in a Secret, and its registration.

Each replica serves the certificate in the Secret. The leader renews expiring certificates, and
updates the webhook configurations with the trusted authorities (spec 12 §1.4: the original leaves
all of this to its deployer).
"""

import base64
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from pergola.admission.configurations import configuration_keys, is_left_to_user, is_registered
from pergola.admission.owner import Owner
from pergola.api.kinds import SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    map_at,
    metadata_of,
    owner_references_of,
    resource_version_of,
)
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, NotFound
from pergola.kube.selectors import select_name
from pergola.pki import Identity, Pair, Plan, advance, next_change
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.controller import Again, Outcome, Workers
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics

log = get_logger("webhook-certificates")

CONTROLLER: Final = "webhook-registration"
_BUNDLE: Final = "ca.crt"
_AUTHORITY_KEY: Final = "ca.key"
_CERTIFICATE: Final = "tls.crt"
_KEY: Final = "tls.key"
_CHECK_SECONDS: Final = 12 * 3600.0

Render = Callable[[bytes], list[JsonObject]]
"""Renders the webhook configurations from the trusted authorities (PEM)."""


class SelfSigned:
    """The certificates and the registration of one server.

    Args:
        secret: holds the identity.
        name: of the webhook configurations.
        render: renders them.
        directory: where to write `tls.crt` and `tls.key` for the server.
        owner: the object whose deletion deletes the configurations; None for none.
    """

    def __init__(
        self,
        client: Client,
        secret: Key,
        plan: Plan,
        *,
        name: str,
        render: Render,
        directory: Path,
        owner: Owner | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._secret = secret
        self._plan = plan
        self._name = name
        self._render = render
        self._directory = directory
        self._owner = owner
        self._clock = clock or SystemClock()
        self._configurations: dict[GroupVersionKind, Cache[JsonObject]] = {}

    async def prepare(self) -> None:
        """Create the certificate unless it exists; every replica calls this first.

        Raises:
            ServingError: the owner does not exist.
            KubeError: the API server refused, or did not answer.
        """
        if self._owner:
            await self._owner.reference(self._client)
        try:
            secret = await self._client.get(SECRET, self._secret)
        except NotFound:
            secret = await self._created()
        identity = read_identity(secret)
        if identity is None:
            secret = await self._write(advance(None, self._plan, self._clock.now()), secret)
            identity = read_identity(secret)
        self._serve(identity)

    def serving(self) -> Unit:
        """Return the unit that every replica runs: it keeps the files in sync with the Secret."""
        secrets = self._secrets()
        secrets.subscribe(lambda change: self._serve(change.new))
        return Unit(caches=[secrets])

    def leading(self, metrics: Metrics) -> Unit:
        """Return the unit that the leader runs: renewal and registration."""
        secrets = self._secrets()
        self._configurations = {
            gvk: Cache(self._client, gvk, _whole, fields=select_name(key.name))
            for gvk, key in configuration_keys(self._name)
        }
        controller = Workers(CONTROLLER, self.reconcile, workers=1, metrics=metrics, deadline=60.0)

        def trigger(_: Change[Identity | None] | Change[JsonObject]) -> None:
            controller.queue.add(self._name)

        secrets.subscribe(trigger)
        for cache in self._configurations.values():
            cache.subscribe(trigger)
        controller.queue.add(self._name)
        return Unit(caches=[secrets, *self._configurations.values()], controllers=[controller])

    async def reconcile(self, _: str) -> Outcome:
        """Register the trusted authorities before the newest of them signs anything.

        A configuration with the break-glass label stays as it is, until the label is removed.
        """
        secret = await self._client.get(SECRET, self._secret)
        identity = read_identity(secret)
        if identity is not None:
            await self._register(identity)
        newer = advance(identity, self._plan, self._clock.now())
        if newer is not identity:
            await self._write(newer, secret)
            await self._register(newer)
            log.info("certificates renewed", secret=str(self._secret))
        pause = (next_change(newer) - self._clock.now()).total_seconds()
        return Again(min(max(pause, 1.0), _CHECK_SECONDS))

    async def unregister(self) -> None:
        """Delete the configurations, so that no API server calls a stopped server."""
        for gvk, key in configuration_keys(self._name):
            with suppress(NotFound):
                await self._client.delete(gvk, key)

    def _secrets(self) -> Cache[Identity | None]:
        return Cache(
            self._client,
            SECRET,
            read_identity,
            namespace=self._secret.namespace,
            fields=select_name(self._secret.name),
        )

    async def _created(self) -> JsonObject:
        identity = advance(None, self._plan, self._clock.now())
        try:
            return await self._client.create(_rendered(self._secret, identity))
        except AlreadyExists:  # by another replica
            return await self._client.get(SECRET, self._secret)

    async def _write(self, identity: Identity, secret: JsonObject) -> JsonObject:
        metadata = {"resourceVersion": resource_version_of(secret)}
        data = _rendered(self._secret, identity)["data"]
        return await self._client.patch(SECRET, self._secret, {"metadata": metadata, "data": data})

    async def _register(self, identity: Identity) -> None:
        desired = {GroupVersionKind.of(obj): obj for obj in self._render(identity.bundle)}
        if self._owner and desired:
            # Read each time: after it was created anew, the garbage collector deletes what names
            # the uid of its earlier incarnation.
            reference = await self._owner.reference(self._client)
            for obj in desired.values():
                obj["metadata"]["ownerReferences"] = [reference]
        for gvk, cache in self._configurations.items():
            live = cache.get(Key("", self._name))
            if live is not None and is_left_to_user(live):
                log.warning("registration left as it is: its label says emergency", kind=gvk.kind)
            elif gvk not in desired:
                if live is not None:
                    await self._client.delete(gvk, Key("", self._name))
            elif live is None:
                cache.observe(await self._client.create(desired[gvk]))
            elif not is_registered(desired[gvk], live):
                cache.observe(await self._patched(gvk, desired[gvk]))

    async def _patched(self, gvk: GroupVersionKind, desired: JsonObject) -> JsonObject:
        metadata: JsonObject = {"labels": map_at(metadata_of(desired), "labels")}
        if owners := owner_references_of(desired):
            metadata["ownerReferences"] = owners
        patch = {"metadata": metadata, "webhooks": desired["webhooks"]}
        return await self._client.patch(gvk, Key("", self._name), patch)

    def _serve(self, identity: Identity | None) -> None:
        """Write the files if they differ: atomically, and readable only by this user."""
        if identity is None:
            return
        for name, content in (
            (_KEY, identity.server.private),
            (_CERTIFICATE, identity.server.public),
        ):
            path = self._directory / name
            if path.exists() and path.read_bytes() == content:
                continue
            fresh = path.with_suffix(".new")
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            fresh.replace(path)


def read_identity(secret: JsonObject) -> Identity | None:
    """Return the identity in a Secret, or None if a part is missing or not valid base64."""
    data = map_at(secret, "data")
    try:
        bundle, key, public, private = (
            base64.b64decode(data[name], validate=True)
            for name in (_BUNDLE, _AUTHORITY_KEY, _CERTIFICATE, _KEY)
        )
    except (KeyError, TypeError, ValueError):
        return None
    return Identity(bundle, key, Pair(public, private))


def _rendered(key: Key, identity: Identity) -> JsonObject:
    data = {
        _BUNDLE: identity.bundle,
        _AUTHORITY_KEY: identity.authority_key,
        _CERTIFICATE: identity.server.public,
        _KEY: identity.server.private,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "type": "Opaque",
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }


def _whole(obj: JsonObject) -> JsonObject:
    return obj
