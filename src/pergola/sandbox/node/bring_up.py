"""Startup of a sandbox with a node, in dependency order."""

from pathlib import Path
from typing import Final

from pergola.runtime.task_group import TaskGroup
from pergola.sandbox import control
from pergola.sandbox.components import (
    APISERVER,
    CONTAINERD,
    ETCD,
    Components,
)
from pergola.sandbox.images.catalogue import named
from pergola.sandbox.module import (
    COREDNS,
    LOCAL_PATH_HELPER,
    LOCAL_PATH_PROVISIONER,
    METRICS_SERVER,
    PAUSE,
)
from pergola.sandbox.node import addons, network
from pergola.sandbox.node.configuration import NODE
from pergola.sandbox.node.image_import import import_offers
from pergola.sandbox.progress import Progress
from pergola.sandbox.readiness import Readiness

# The other components need these, and would exit again and again without them.
_FIRST: Final = (ETCD, APISERVER, CONTAINERD)
_NEEDED: Final = (PAUSE, COREDNS, LOCAL_PATH_PROVISIONER, LOCAL_PATH_HELPER, METRICS_SERVER)


async def bring_up(
    directory: Path, kubeconfig: Path, components: Components, progress: Progress
) -> None:
    """Start the components, import images, and return when pods can run.

    Raises:
        SandboxError: a component does not start, or an image cannot be provided.
    """
    readiness = Readiness(directory, kubeconfig)
    progress("starting etcd, kube-apiserver and containerd")
    await _start(directory, *_FIRST)
    await readiness.of_socket(directory / "containerd.sock")
    try:
        async with TaskGroup() as group:
            group.create_task(_import(directory, progress))
            group.create_task(readiness.of_apiserver())
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None  # the first one cancelled the other task
    await readiness.of_objects(network.definitions(directory / "bin"))
    await readiness.of_objects(network.permissions())
    progress("starting kube-controller-manager, kube-scheduler, kubelet, kube-proxy and Felix")
    await _start(directory, *(c for c in components if c not in _FIRST))
    await readiness.of_path(network.INITIALIZED, "Felix to start")
    await readiness.of_objects(addons.manifests(directory / "volumes"))
    progress("waiting for the node, DNS and the volume provisioner")
    await readiness.of_node()
    await readiness.of_path(network.readiness_path(NODE), "NetworkPolicies to be enforced")
    await readiness.of_controllers()
    await readiness.of_deployments(addons.DEPLOYMENTS)
    await control.command(directory, "ready")


async def power_on(directory: Path, kubeconfig: Path) -> None:
    """Start the components of a node that was powered off.

    Raises:
        SandboxError: a component does not start.
    """
    readiness = Readiness(directory, kubeconfig)
    await _start(directory, *_FIRST)
    await readiness.of_socket(directory / "containerd.sock")
    await readiness.of_apiserver()
    state = await control.command(directory, "status")
    await _start(directory, *(c for c in state["components"] if c not in _FIRST))


async def _import(directory: Path, progress: Progress) -> None:
    progress("importing images")
    await import_offers(directory, named(_NEEDED), progress)


async def _start(directory: Path, *components: str) -> None:
    for component in components:
        await control.command(directory, "start", component)
