"""The operator's controllers of Gardenlets on the clusters of `extension_garden`."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from pergola.api.kinds import SEED
from pergola.api.objects import JsonObject, Key
from pergola.charts import Blobs, ChartReference, Helm
from pergola.garden.components.gardener_access import EXTERNAL
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig
from pergola.manifests import manifest
from pergola.operator.copies import Copies
from pergola.operator.gardenlet.names import GARDENLET
from pergola.operator.gardenlet.unit import Environment, chart_updates, gardenlets
from pergola.operator.gardenlet.values import Inherited
from pergola.operator.template import images
from pergola.runtime.metrics import Metrics
from pergola.sandbox import binaries
from pergola.sandbox.on_demand import HELM
from pergola.testing.waiting import running, until
from pergola.testing.world import RecordingClient
from tests.support.extension_garden import ExtensionGarden

VERSION: Final = "v1.150.0"
_CONFIGURATION: Final = "gardenlet.config.gardener.cloud/v1alpha1"


class Writers(NamedTuple):
    """The clients of the controllers, with what they wrote, and their metrics."""

    runtime: RecordingClient
    virtual: RecordingClient
    metrics: Metrics


def gardenlet(
    name: str, chart: ChartReference | str, *, config: JsonObject | None = None, **spec: object
) -> JsonObject:
    """Return a Gardenlet, as users write it.

    Args:
        config: Fields of gardenlet's configuration.
        spec: More fields; those of `deployment` are added to the chart.
    """
    deployment = {
        "helm": {"ociRepository": {"ref": str(chart)}},
        **_map(spec.pop("deployment", {})),
    }
    configuration = {"apiVersion": _CONFIGURATION, "kind": "GardenletConfiguration"}
    fields = {"deployment": deployment, "config": {**configuration, **(config or {})}, **spec}
    return manifest(GARDENLET.api_version, GARDENLET.kind, name, namespace="garden", spec=fields)


def seed(name: str) -> JsonObject:
    """Return a Seed, as gardenlet registers it."""
    return manifest(SEED.api_version, SEED.kind, name, spec={"provider": {"type": "local"}})


async def publish_address(garden: ExtensionGarden, kubeconfig: str) -> None:
    """Write the Secret with the public address of the virtual cluster."""
    await garden.secret(EXTERNAL, {"kubeconfig": kubeconfig})


async def registered(virtual: Client, name: str, status: str, *, holds: str = "") -> JsonObject:
    """Wait for the condition of a Gardenlet, and return the Gardenlet.

    Args:
        holds: A part of the condition's message.
    """

    def matches(obj: JsonObject) -> bool:
        return any(
            each["status"] == status and holds in each["message"]
            for each in obj.get("status", {}).get("conditions", [])
            if each["type"] == "SeedRegistered"
        )

    return await until(virtual, GARDENLET, Key("garden", name), matches)


@asynccontextmanager
async def gardenlet_controllers(
    runtime: ClusterConfig, virtual: ClusterConfig, directory: Path
) -> AsyncGenerator[Writers]:
    """Run the controllers while the block lasts.

    Args:
        runtime: How they reach the runtime cluster.
        directory: For charts.
    """
    helm = await asyncio.to_thread(lambda: binaries.find((HELM,))[HELM])
    async with AsyncExitStack() as stack:
        writers = Writers(
            await stack.enter_async_context(RecordingClient.connect(runtime)),
            await stack.enter_async_context(RecordingClient.connect(virtual)),
            Metrics(),
        )
        writers.runtime.writes = []
        writers.virtual.writes = []
        copies = Copies(writers.runtime)
        environment = Environment(
            copies=copies,
            helm=Helm(str(helm)),
            blobs=Blobs(directory),
            inherited=Inherited.of(images({}), VERSION, {}),
            metrics=writers.metrics,
        )
        units = (
            gardenlets(environment, writers.virtual),
            chart_updates(environment, writers.virtual),
        )
        async with running(copies.unit, *units):
            yield writers


def _map(value: object) -> JsonObject:
    assert isinstance(value, dict)
    return value
