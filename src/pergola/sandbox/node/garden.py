"""A runtime cluster with a real node, on which the operator runs from its chart."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from pergola.api.objects import JsonObject, JsonValue
from pergola.kube.yaml import dump
from pergola.runtime.task_group import together
from pergola.sandbox import WITH_NODE, Sandbox, binaries, start
from pergola.sandbox.helm import helm
from pergola.sandbox.images import build
from pergola.sandbox.images.catalogue import GARDEN_IMAGES, named
from pergola.sandbox.images.pergola import PergolaImage
from pergola.sandbox.node.image_import import import_offers
from pergola.sandbox.on_demand import (
    GARDENER_ADMISSION_CONTROLLER,
    GARDENER_APISERVER,
    GARDENER_CONTROLLER_MANAGER,
    GARDENER_SCHEDULER,
    HELM,
)
from pergola.sandbox.progress import Progress, silent
from pergola.shipped import CHARTS

CHART: Final = CHARTS / "operator"
GATES: Final[JsonObject] = {"IstioTLSTermination": False}
"""Gates that are not at their defaults, so that clients reach the gateway by its address.

A gateway that terminates TLS routes requests by name, and DNS does not know those of a sandbox.
"""

_RELEASE: Final = "gardener-operator"
_NAMESPACE: Final = "garden"
_GARDENER: Final = (
    GARDENER_APISERVER,
    GARDENER_ADMISSION_CONTROLLER,
    GARDENER_CONTROLLER_MANAGER,
    GARDENER_SCHEDULER,
)


@asynccontextmanager
async def garden_node(
    name: str, progress: Progress = silent, *, gates: JsonObject = GATES
) -> AsyncGenerator[Sandbox]:
    """Start a cluster with a node and a ready operator, and stop it when the block ends.

    Images are built first, which takes half an hour where none has been built before.

    Args:
        gates: The feature gates of the operator that are not at their defaults.

    Raises:
        SandboxError: An image cannot be built, or the sandbox cannot be started.
        HelmError: The operator did not become ready.
    """
    await asyncio.to_thread(binaries.find, (HELM,), progress)
    await asyncio.to_thread(build.build, named(GARDEN_IMAGES), progress)
    sandbox = await start(name, components=WITH_NODE, progress=progress)
    try:
        progress("importing images, and installing the operator with Helm")
        # Later, each import would be between two tasks of the Garden that wait for its pods.
        await together(
            import_offers(sandbox.directory, named(GARDEN_IMAGES)),
            asyncio.to_thread(install_operator, sandbox, gates),
        )
        yield sandbox
    finally:
        await sandbox.stop()


def install_operator(sandbox: Sandbox, gates: JsonObject) -> None:
    """Install the operator's chart, or upgrade it, and return when its pods are ready.

    Raises:
        HelmError: They did not become ready.
        SandboxError: Helm cannot be built.
    """
    helm(
        *("upgrade", "--install", _RELEASE, str(CHART)),
        *("--namespace", _NAMESPACE, "--create-namespace", "--wait", "--timeout", "5m"),
        *("--kubeconfig", str(sandbox.kubeconfig)),
        values=values(gates),
    )


def values(gates: JsonObject) -> JsonObject:
    """Return values of the chart for what a sandbox has: its Gardener, and its stand-ins."""
    images: list[JsonValue] = [
        {"name": offer.name, "tag": offer.version} for offer in named(_GARDENER)
    ]
    return {
        "image": {"repository": PergolaImage.repository},
        "config": {"featureGates": {"DefaultSeccompProfile": True, **gates}},
        "imageVectorOverwrite": dump({"images": images}),
    }
