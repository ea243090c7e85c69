"""A control plane namespace on a seed, with its Cluster and its extension resources.

    site = await extension_site(client, namespace)
    actuator = recording_actuator(site.type)
    async with running(site.unit(actuator)):
        await site.create("reconcile")
        await site.until_done("Create")
    assert actuator.calls == ["reconcile"]

Every site has a type of its own, so that no controller of another test looks at its resources.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from copy import copy
from datetime import UTC, datetime

from pergola.api import marks
from pergola.api.extensions_v1alpha1 import CLUSTER, NETWORK
from pergola.api.objects import GroupVersionKind, JsonObject, Key, annotations_of, map_at
from pergola.extensions.actuator import Actuator, Context, Status
from pergola.extensions.lifecycle import Settings, extension_controller
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.crds import install_extension_crds
from pergola.testing.waiting import PATIENCE, until, until_gone
from pergola.testing.world import RecordingClient

__all__ = ["ExtensionSite", "RecordingActuator", "extension_site", "recording_actuator"]

Act = Callable[[Context, JsonObject], Awaitable[Status | None]]


class RecordingActuator(Actuator):
    """An actuator that records calls of its methods, and behaves as `acts` defines.

    Attributes:
        calls: the names of the methods, in order.
        called: is set with each call.
        seen: the objects passed to the methods.
        acts: the behaviour of each method by name; a method without one does nothing.
    """

    kind = "Network"
    type = ""
    name = "networking-recording"

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.called = asyncio.Event()
        self.seen: list[JsonObject] = []
        self.contexts: list[Context] = []
        self.acts: dict[str, Act] = {}

    async def reconcile(self, context: Context, obj: JsonObject) -> Status | None:
        """Record `reconcile`."""
        return await self._note("reconcile", context, obj)

    async def delete(self, context: Context, obj: JsonObject) -> Status | None:
        """Record `delete`."""
        return await self._note("delete", context, obj)

    async def force_delete(self, context: Context, obj: JsonObject) -> Status | None:
        """Record `force_delete`."""
        return await self._note("force_delete", context, obj)

    async def migrate(self, context: Context, obj: JsonObject) -> Status | None:
        """Record `migrate`."""
        return await self._note("migrate", context, obj)

    async def restore(self, context: Context, obj: JsonObject) -> Status | None:
        """Record `restore`."""
        return await self._note("restore", context, obj)

    def taken(self) -> list[str]:
        """Return the calls since the last time."""
        taken, self.calls = self.calls, []
        return taken

    async def _note(self, method: str, context: Context, obj: JsonObject) -> Status | None:
        self.calls.append(method)
        self.called.set()
        self.seen.append(obj)
        self.contexts.append(context)
        act = self.acts.get(method)
        return await act(context, obj) if act else None


def recording_actuator(of_type: str, of_kind: str = RecordingActuator.kind) -> RecordingActuator:
    """Return a recording actuator for resources of a type and a kind."""

    class Own(RecordingActuator):
        type = of_type
        kind = of_kind

    return Own()


class ExtensionSite:
    """A control plane namespace with one extension resource.

    Attributes:
        client: the administrator's.
        type: of its extension resources.
        key: of the resource that `create` makes.
    """

    def __init__(
        self, client: Client, namespace: str, gvk: GroupVersionKind = NETWORK, of_type: str = ""
    ) -> None:
        self.client = client
        self.namespace = namespace
        self.gvk = gvk
        self.type = of_type or namespace
        self.key = Key(namespace, namespace[-20:].strip("-"))

    def another(self, name: str) -> "ExtensionSite":
        """Return the same site with another extension resource."""
        found = copy(self)
        found.key = Key(self.namespace, name)
        return found

    # The Cluster

    async def put_cluster(self, shoot: JsonObject | None = None) -> None:
        """Write the Cluster with this Shoot."""
        spec = {"shoot": {"metadata": {"name": self.key.name}} | (shoot or {})}
        key = Key("", self.namespace)
        try:
            live = await self.client.get(CLUSTER, key)
        except NotFound:
            metadata = {"name": self.namespace}
            await self.client.create(_object(CLUSTER, metadata, spec))
        else:
            await self.client.update({**live, "spec": spec})

    async def clean_up(self) -> None:
        """Delete objects that outlive the namespace."""
        with suppress(NotFound):
            await self.client.delete(CLUSTER, Key("", self.namespace))
        with suppress(NotFound):
            await self.edit({"metadata": {"finalizers": []}})

    # The extension resource

    async def create(
        self,
        operation: str = "",
        *,
        finalizers: tuple[str, ...] = (),
        spec: JsonObject | None = None,
    ) -> JsonObject:
        """Create the resource, with an operation annotation if one is given."""
        metadata: JsonObject = {"name": self.key.name}
        if self.key.namespace:
            metadata["namespace"] = self.key.namespace
        if operation:
            metadata["annotations"] = request(operation)
        if finalizers:
            metadata["finalizers"] = list(finalizers)
        ranges = {"podCIDR": "100.64.0.0/11", "serviceCIDR": "100.96.0.0/13"}
        desired = {"type": self.type} | (ranges if self.gvk == NETWORK else {}) | (spec or {})
        return await self.client.create(_object(self.gvk, metadata, desired))

    async def annotate(self, operation: str) -> JsonObject:
        """Annotate a request, as a caller does."""
        return await self.edit({"metadata": {"annotations": request(operation)}})

    async def edit(self, patch: JsonObject) -> JsonObject:
        """Merge-patch the resource."""
        return await self.client.patch(self.gvk, self.key, patch)

    async def edit_status(self, status: JsonObject) -> JsonObject:
        """Merge-patch the status of the resource, as if it had been written earlier."""
        return await self.client.patch(self.gvk, self.key, {"status": status}, subresource="status")

    async def delete(self) -> None:
        """Confirm and request the deletion of the resource."""
        await self.edit({"metadata": {"annotations": {marks.CONFIRMATION_DELETION: "true"}}})
        await self.client.delete(self.gvk, self.key)

    async def read(self) -> JsonObject:
        """Return the resource as it is now."""
        return await self.client.get(self.gvk, self.key)

    # Running an actuator, and waiting for its effects

    def unit(
        self,
        actuator: Actuator,
        settings: Settings | None = None,
        *,
        client: Client | None = None,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
    ) -> Unit:
        """Return the unit of an actuator; `client` gives it another identity."""
        return extension_controller(
            client or self.client,
            actuator,
            settings or Settings(),
            metrics=metrics or Metrics(),
            clock=clock,
        )

    async def until(
        self, holds: Callable[[JsonObject], bool], *, patience: float = PATIENCE
    ) -> JsonObject:
        """Wait until `holds` accepts the resource."""
        return await until(self.client, self.gvk, self.key, holds, patience=patience)

    async def until_operation(self, kind: str, state: str = "Succeeded") -> JsonObject:
        """Wait until the last operation is of a type and in a state."""
        return await self.until(lambda obj: operation(obj) == (kind, state))

    async def until_gone(self) -> None:
        """Wait until the resource is gone."""
        await until_gone(self.client, self.gvk, self.key)


class WatchedClient(RecordingClient):
    """A recording client that also keeps its patches, their results, and its reads.

    Attributes:
        bodies: the patches.
        states: of the last operation, and the operation annotation, after each patch.
    """

    bodies: list[JsonObject]
    states: list[tuple[str, str]]
    _reads: list[str]

    async def patch(
        self,
        gvk: GroupVersionKind,
        key: Key,
        body: JsonObject | Sequence[JsonObject],
        *,
        subresource: str = "",
        manager: str = "",
    ) -> JsonObject:
        """Record the patch and its result."""
        written = await super().patch(gvk, key, body, subresource=subresource, manager=manager)
        asked = annotations_of(written).get(marks.OPERATION, "")
        self.states = [*getattr(self, "states", []), (operation(written)[1], asked)]
        self.bodies = [*getattr(self, "bodies", []), *([body] if isinstance(body, dict) else body)]
        return written

    async def get(
        self, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
    ) -> JsonObject:
        """Record the key."""
        self._reads = [*getattr(self, "_reads", []), str(key)]
        return await super().get(gvk, key, metadata_only=metadata_only)

    def reads(self, name: str) -> int:
        """Return how often the Cluster of that name was read."""
        return getattr(self, "_reads", []).count(name)


async def extension_site(client: Client, namespace: str, of_type: str = "") -> ExtensionSite:
    """Return a site for Networks with a Cluster, in an existing namespace."""
    await install_extension_crds(client)
    site = ExtensionSite(client, namespace, of_type=of_type)
    await site.put_cluster()
    return site


def request(operation: str) -> dict[str, str]:
    """Return a caller's annotations that request an operation now."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
    return {marks.OPERATION: operation, marks.TIMESTAMP: now}


def operation(obj: JsonObject) -> tuple[str, str]:
    """Return the type and state of the last operation, or empty strings."""
    last = map_at(obj, "status", "lastOperation")
    return last.get("type", ""), last.get("state", "")


async def hang(_context: Context, _obj: JsonObject) -> None:
    """Never return; for actuators in tests."""
    await asyncio.get_running_loop().create_future()


def _object(gvk: GroupVersionKind, metadata: JsonObject, spec: JsonObject) -> JsonObject:
    return {
        "apiVersion": gvk.api_version,
        "kind": gvk.kind,
        "metadata": metadata,
        "spec": spec,
    }
