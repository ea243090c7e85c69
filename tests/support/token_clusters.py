"""Two clusters for tests of the TokenRequestor: Secrets in one, ServiceAccounts in the other.

```python
async with token_clusters(source_config, target_config, client, namespace) as clusters:
    await clusters.put()
    async with clusters.start():
        secret = await clusters.issued()
```
"""

import asyncio
import base64
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pergola.api.kinds import EVENT, SECRET, SERVICE_ACCOUNT
from pergola.api.objects import GroupVersionKind, JsonObject, Key, annotations_of, map_at
from pergola.kube.client import Client
from pergola.kube.credentials import StaticToken
from pergola.kube.errors import NotFound, Unreachable
from pergola.kube.kubeconfig import ClusterConfig
from pergola.kube.yaml import dump, parse
from pergola.resource_manager.controllers.token_requestor import (
    Settings,
    names,
    token_requestor,
)
from pergola.resource_manager.controllers.token_requestor.observe import data_of, token_of
from pergola.runtime.clock import FakeClock
from pergola.runtime.controlling.controller import Again, Done, Outcome, Workers
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.namespaces import clear_namespace
from pergola.testing.waiting import PATIENCE, running, settled, until
from pergola.testing.world import RecordingClient

TWELVE_HOURS: Final = timedelta(hours=12)
"""The default lifetime of tokens."""
NEARLY: Final = timedelta(seconds=90)
"""The tolerance of times: a token's life begins a moment after the test read the clock."""


class Recording(RecordingClient):
    """A recording client for subresources too; it can be cut off, or stopped before a patch."""

    unreachable = False
    before_patch: asyncio.Event | None = None

    async def create_subresource(
        self, gvk: GroupVersionKind, key: Key, subresource: str, body: JsonObject
    ) -> JsonObject:
        """Record `create/subresource`."""
        self._note("create", gvk.kind, key, subresource)
        self._check()
        return await super().create_subresource(gvk, key, subresource, body)

    async def get(
        self, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
    ) -> JsonObject:
        """Fail while the server is unreachable."""
        self._check()
        return await super().get(gvk, key, metadata_only=metadata_only)

    async def create(self, obj: JsonObject, *, dry_run: bool = False) -> JsonObject:
        """Fail while the server is unreachable."""
        self._check()
        return await super().create(obj, dry_run=dry_run)

    async def patch(
        self,
        gvk: GroupVersionKind,
        key: Key,
        body: JsonObject | Sequence[JsonObject],
        *,
        subresource: str = "",
        manager: str = "",
    ) -> JsonObject:
        """Block forever if the test is about to kill the instance."""
        if self.before_patch is not None:
            self.before_patch.set()
            await asyncio.Event().wait()
        return await super().patch(gvk, key, body, subresource=subresource, manager=manager)

    def _check(self) -> None:
        if self.unreachable:
            raise Unreachable("connection refused")


class NoJitter(random.Random):
    """A random source without randomness."""

    def random(self) -> float:
        """Return zero."""
        return 0.0


@dataclass
class Clusters:
    """A namespace in each of two clusters, as administrator and as recorded clients."""

    source: Client
    target: Client
    source_recorder: Recording
    target_recorder: Recording
    target_config: ClusterConfig
    namespace: str
    target_namespace: str
    clock: FakeClock
    metrics: Metrics
    unit: Unit | None = None

    def start(self, **settings: Any) -> AbstractAsyncContextManager[None]:
        """Run an instance for these two namespaces only."""
        chosen = {
            "source_namespaces": (self.namespace,),
            "target_namespaces": (self.target_namespace,),
            "resource_class": "shoot",
        } | settings
        self.unit = token_requestor(
            self.source_recorder,
            self.target_recorder,
            Settings(**chosen),
            metrics=self.metrics,
            clock=self.clock,
            random_source=NoJitter(),
        )
        return running(self.unit)

    async def settle(self) -> None:
        """Wait until the instance has nothing to do."""
        assert self.unit is not None
        await settled(self.unit, self.source)

    async def reconcile(self, name: str = "access") -> Outcome:
        """Run one reconciliation and return its outcome."""
        assert self.unit is not None
        controller = self.unit.controllers[0]
        assert isinstance(controller, Workers)
        # The controller keeps its reconcile function private.
        outcome = await controller._reconcile(Key(self.namespace, name))
        assert isinstance(outcome, Done | Again)
        return outcome

    def taken(self) -> list[str]:
        """Return the writes of both clients since the last call, without Events."""
        writes = self.source_recorder.taken() + self.target_recorder.taken()
        return [write for write in writes if " Event " not in write]

    # Secrets

    async def put(
        self,
        name: str = "access",
        *,
        annotations: JsonObject | None = None,
        labels: JsonObject | None = None,
        data: dict[str, bytes] | None = None,
    ) -> JsonObject:
        """Create a Secret that requests a token of ServiceAccount `robot`; None removes a part."""
        asked = {names.NAME: "robot", names.NAMESPACE: self.target_namespace}
        marked = {names.PURPOSE: "token-requestor", names.CLASS: "shoot"}
        return await self.source.create(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": name,
                    "namespace": self.namespace,
                    "annotations": _without_none(asked | (annotations or {})),
                    "labels": _without_none(marked | (labels or {})),
                },
                "data": encoded(data or {}),
            }
        )

    async def secret(self, name: str = "access") -> JsonObject:
        """Return the current Secret."""
        return await self.source.get(SECRET, Key(self.namespace, name))

    async def edit(self, patch: JsonObject, name: str = "access") -> JsonObject:
        """Change the Secret by a merge patch."""
        return await self.source.patch(SECRET, Key(self.namespace, name), patch)

    async def annotate(self, name: str = "access", **annotations: str | None) -> JsonObject:
        """Set annotations by the names of their constants."""
        values = {getattr(names, constant): value for constant, value in annotations.items()}
        return await self.edit({"metadata": {"annotations": values}}, name)

    async def issued(self, name: str = "access", *, other_than: bytes = b"") -> JsonObject:
        """Wait until the Secret has a token."""
        return await until(
            self.source,
            SECRET,
            Key(self.namespace, name),
            lambda secret: token_of(secret) not in (b"", other_than) and has_renewal(secret),
        )

    # ServiceAccounts

    async def account(self, name: str = "robot") -> JsonObject:
        """Return the current ServiceAccount."""
        return await self.target.get(SERVICE_ACCOUNT, Key(self.target_namespace, name))

    async def has_account(self, name: str = "robot") -> bool:
        """Return whether the ServiceAccount exists."""
        try:
            await self.account(name)
        except NotFound:
            return False
        return True

    async def delete_account(self) -> None:
        """Delete the ServiceAccount."""
        await self.target.delete(SERVICE_ACCOUNT, Key(self.target_namespace, "robot"))

    async def warning(self, reason: str) -> str:
        """Wait for a Warning Event of that reason, and return its note."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for event in await self.source.list(EVENT, self.namespace):
                    if (event["type"], event["reason"]) == ("Warning", reason):
                        assert event["regarding"]["kind"] == "Secret"
                        return str(event["note"])

    @property
    def to_target(self) -> JsonObject:
        """The annotations that send a token to Secret `moved` of the target cluster."""
        return {names.TARGET_NAME: "moved", names.TARGET_NAMESPACE: self.target_namespace}

    async def target_secret(self) -> JsonObject:
        """Return the Secret `moved` of the target cluster."""
        return await self.target.get(SECRET, Key(self.target_namespace, "moved"))

    async def moved(self) -> JsonObject:
        """Wait until a token has moved to the target cluster, and return its Secret."""
        await until(self.source, SECRET, Key(self.namespace, "access"), _has_moved)
        return await self.target_secret()

    def as_bearer(self, token: bytes) -> Client:
        """Return a client of the target cluster that has nothing but a token."""
        credentials = StaticToken(token.decode())
        return Client.connect(replace(self.target_config, credentials=credentials))


def encoded(data: dict[str, bytes]) -> dict[str, str]:
    """Return the data of a Secret, as JSON has it."""
    return {key: base64.b64encode(value).decode() for key, value in data.items()}


def _without_none(parts: JsonObject) -> JsonObject:
    return {key: value for key, value in parts.items() if value is not None}


def _has_moved(secret: JsonObject) -> bool:
    return has_renewal(secret) and not {"token", "kubeconfig"} & map_at(secret, "data").keys()


def has_renewal(secret: JsonObject) -> bool:
    """Return whether a token was issued."""
    return names.RENEW in annotations_of(secret)


def renewal(secret: JsonObject) -> datetime:
    """Return the time at which the token is renewed."""
    return datetime.fromisoformat(annotations_of(secret)[names.RENEW])


def kubeconfig_with(token: str | None = None, ca: bytes = b"an old CA", **more: Any) -> bytes:
    """Return a kubeconfig with fields that Pergola does not know."""
    return dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "main",
            "contexts": [
                {"name": "main", "context": {"cluster": "shoot", "user": "robot", "new": "x"}},
                {"name": "other", "context": {"cluster": "other", "user": "somebody"}},
            ],
            "clusters": [
                {
                    "name": "shoot",
                    "cluster": {
                        "server": "https://api.example",
                        "certificate-authority-data": base64.b64encode(ca).decode(),
                        "unknown-field": {"kept": True},
                    },
                },
                {"name": "other", "cluster": {"server": "https://other.example"}},
            ],
            "users": [
                {"name": "somebody", "user": {"token": "of somebody"}},
                {"name": "robot", "user": {"token": token, "future": 1} if token else {}},
            ],
            **more,
        }
    ).encode()


def kubeconfig_in(secret: JsonObject) -> JsonObject:
    """Return the kubeconfig of a Secret."""
    config = parse(data_of(secret, "kubeconfig"))
    assert isinstance(config, dict)
    return config


@asynccontextmanager
async def token_clusters(
    source_config: ClusterConfig, target_config: ClusterConfig, source: Client, namespace: str
) -> AsyncGenerator[Clusters]:
    """Yield the clusters with a namespace in each; creates the one in the target."""
    target_namespace = f"{namespace}-target"
    metadata = {"name": target_namespace}
    async with (
        Client.connect(target_config) as target,
        Recording.connect(source_config) as source_recorder,
        Recording.connect(target_config) as target_recorder,
    ):
        await target.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        yield Clusters(
            source,
            target,
            source_recorder,
            target_recorder,
            target_config,
            namespace,
            target_namespace,
            FakeClock(datetime.now(UTC).replace(microsecond=0)),
            Metrics(),
        )
        await clear_namespace(target, target_namespace)
