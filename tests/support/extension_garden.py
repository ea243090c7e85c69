"""A runtime cluster and a virtual one in which the operator's controllers install Extensions.

The Garden is only an object whose status tests write. The resource managers of both clusters, and
the controllers of Extensions with the permissions of the operator's chart, run in the test's loop.
"""

import asyncio
import base64
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pergola.api.conditions import get_condition
from pergola.api.kinds import NAMESPACE, SECRET, SEED
from pergola.api.objects import GroupVersionKind, JsonObject, Key, finalizers_of, maps_at, name_of
from pergola.api.operator_config import API_VERSION, KIND, configuration_from
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN, Garden, garden_from
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.charts import Blobs, Helm
from pergola.garden.components.virtual_access import GENERIC_NAME
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import ClusterConfig
from pergola.manifests import manifest
from pergola.operator.copies import Copies
from pergola.operator.extension.installations import INSTALLATION, REGISTRATION
from pergola.operator.extension.required_runtime import KINDS
from pergola.operator.extension.runtime import PRIORITY, PRIORITY_CLASS
from pergola.operator.extension.units import Environment, extension_units
from pergola.operator.gardenlet.names import GARDENLET
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.resource_manager.manager import Options, ResourceManager
from pergola.runtime.metrics import Metrics
from pergola.runtime.task_group import TaskGroup
from pergola.sandbox import binaries
from pergola.sandbox.on_demand import HELM
from pergola.testing.crds import definition, serve
from pergola.testing.waiting import running, until, until_gone
from pergola.testing.world import RecordingClient
from tests.support.care_site import template
from tests.support.gardens import MINIMAL, with_values

GENERIC: Final = "generic-token-kubeconfig-1"
_RECONCILED: Final = {"type": "Reconcile", "state": "Succeeded", "progress": 100}
_TIME: Final = "2026-01-01T00:00:00Z"
DEPLOYMENT: Final = GroupVersionKind("core.gardener.cloud", "v1", "ControllerDeployment")
"""The kind by which gardenlets know how to install an extension."""
_GARDENER_KINDS: Final = (INSTALLATION, REGISTRATION, DEPLOYMENT, GARDENLET, SEED)
_REMOVED: Final = (GARDEN, EXTENSION, MANAGED_RESOURCE, *(kind.gvk for kind in KINDS))


@dataclass
class ExtensionGarden:
    """The clusters of a Garden, as its administrator sees them."""

    runtime: Client
    virtual: Client

    async def create_garden(self, values: Mapping[str, Any] | None = None) -> None:
        """Create the Garden.

        Args:
            values: Of fields, by their dotted paths.
        """
        garden = with_values(MINIMAL, dict(values or {}))
        garden["metadata"]["annotations"] = {GENERIC_NAME: GENERIC}
        await self.runtime.create(garden)

    async def reconciled(self, state: str = "Succeeded") -> None:
        """Write the last operation into the Garden's status, as the main controller does."""
        operation = {**_RECONCILED, "state": state, "lastUpdateTime": _TIME, "description": "-"}
        await self.runtime.patch(
            GARDEN,
            Key("", "minimal"),
            {"status": {"lastOperation": operation}},
            subresource="status",
        )

    async def delete_garden(self) -> None:
        """Request the deletion of the Garden, which a finalizer holds."""
        key = Key("", "minimal")
        finalizers = {"metadata": {"finalizers": ["gardener.cloud/operator"]}}
        await self.runtime.patch(GARDEN, key, finalizers)
        await self.runtime.delete(GARDEN, key)

    async def garden_is_gone(self) -> None:
        """Release the Garden."""
        key = Key("", "minimal")
        await self.runtime.patch(GARDEN, key, {"metadata": {"finalizers": None}})
        await until_gone(self.runtime, GARDEN, key)

    async def condition(
        self, name: str, kind: str, status: str, reason: str = "", *, holds: str = ""
    ) -> JsonObject:
        """Wait for a condition of an Extension, and return it.

        Args:
            holds: A part of its message.
        """

        def matches(extension: JsonObject) -> bool:
            found = get_condition(maps_at(extension, "status", "conditions"), kind) or {}
            return (
                found.get("status") == status
                and reason in ("", found.get("reason"))
                and holds in str(found.get("message"))
            )

        extension = await until(self.runtime, EXTENSION, Key("", name), matches)
        return get_condition(maps_at(extension, "status", "conditions"), kind) or {}

    async def without_condition(self, name: str, kind: str) -> None:
        """Wait until an Extension does not have a condition."""

        def lacks(extension: JsonObject) -> bool:
            return get_condition(maps_at(extension, "status", "conditions"), kind) is None

        await until(self.runtime, EXTENSION, Key("", name), lacks)

    async def secret(
        self, name: str, values: Mapping[str, str], *, role: str = "", kind: str = "Opaque"
    ) -> None:
        """Create or change a Secret in the garden's namespace."""
        data = {key: base64.b64encode(text.encode()).decode() for key, text in values.items()}
        labels = {"gardener.cloud/role": role} if role else None
        obj = manifest(
            "v1", "Secret", name, namespace="garden", labels=labels, data=data, type=kind
        )
        await self.runtime.apply(obj, manager="test", force=True)

    async def clean(self) -> None:
        """Remove the objects that tests leave behind."""
        for gvk in _REMOVED:
            await _remove(self.runtime, gvk)
        for gvk in _GARDENER_KINDS:
            await _remove(self.virtual, gvk)
        for client in (self.runtime, self.virtual):
            await _remove(client, SECRET, "garden")
        for space in await self.runtime.list(NAMESPACE):
            if name_of(space).startswith("runtime-extension-"):
                await self.runtime.delete(NAMESPACE, Key.of(space))
                await until_gone(self.runtime, NAMESPACE, Key.of(space))


async def _remove(client: Client, gvk: GroupVersionKind, namespace: str | None = None) -> None:
    for obj in await client.list(gvk, namespace):
        with suppress(NotFound):
            if finalizers_of(obj):
                await client.patch(gvk, Key.of(obj), {"metadata": {"finalizers": None}})
            await client.delete(gvk, Key.of(obj))


@asynccontextmanager
async def resource_managers(garden: ExtensionGarden) -> AsyncGenerator[None]:
    """Run the resource managers of both clusters while the block lasts."""
    namespaces = ("garden",)
    seed = Options(resource_class="seed", source_namespaces=namespaces, cluster_id="seed")
    shoot = Options(source_namespaces=namespaces, cluster_id="virtual")
    managers = (
        ResourceManager(garden.runtime, garden.runtime, seed),
        ResourceManager(garden.runtime, garden.virtual, shoot),
    )
    async with TaskGroup() as group:
        tasks = [group.create_task(manager.run()) for manager in managers]
        yield
        for task in tasks:
            task.cancel()


@asynccontextmanager
async def extension_controllers(
    config: ClusterConfig,
    directory: Path,
    *,
    settings: JsonObject | None = None,
) -> AsyncGenerator[RecordingClient]:
    """Run the operator's controllers of Extensions while the block lasts.

    Args:
        config: How they reach the runtime cluster.
        directory: For charts.
        settings: Of controllers, in the configuration file.
    """
    header: JsonObject = {"apiVersion": API_VERSION, "kind": KIND, "controllers": settings or {}}
    configuration = configuration_from(header).config
    helm = await asyncio.to_thread(lambda: binaries.find((HELM,))[HELM])
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(RecordingClient.connect(config))
        copies = Copies(client)
        virtual = await stack.enter_async_context(VirtualCluster(copies.client))
        environment = Environment(
            copies=copies,
            virtual=virtual,
            template=template,
            helm=Helm(str(helm)),
            blobs=Blobs(directory),
            metrics=Metrics(),
        )
        units = extension_units(configuration, environment)
        await stack.enter_async_context(running(copies.unit, *units))
        if await client.find(SECRET, Key("garden", "gardener-internal")) is not None:
            await virtual.client()
        yield client


def bare_garden(values: Mapping[str, Any]) -> Garden:
    """Return the Garden that `ExtensionGarden.create_garden` creates."""
    return garden_from(with_values(MINIMAL, dict(values)))


async def connect_virtual(garden: ExtensionGarden, kubeconfig: Path) -> None:
    """Write the Secret with the operator's kubeconfig of the virtual cluster."""
    text = await asyncio.to_thread(kubeconfig.read_text)
    await garden.secret("gardener-internal", {"kubeconfig": text})


async def prepare(runtime: Client, virtual: Client) -> None:
    """Create the objects of a Garden that exist before its Extensions."""
    for client in (runtime, virtual):
        if await client.find(NAMESPACE, Key("", "garden")) is None:
            await client.create(manifest("v1", "Namespace", "garden"))
    if await runtime.find(PRIORITY_CLASS, Key("", PRIORITY)) is None:
        await runtime.create(
            manifest(PRIORITY_CLASS.api_version, PRIORITY_CLASS.kind, PRIORITY, value=1000)
        )
    await serve(virtual, *map(_definition, _GARDENER_KINDS))


def _definition(kind: GroupVersionKind) -> JsonObject:
    """Return a definition of a kind that gardener-apiserver serves, with any content."""
    scope = "Namespaced" if kind == GARDENLET else "Cluster"
    return definition(kind, scope=scope, has_status=True)
