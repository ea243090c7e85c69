"""Startup of a sandbox with simulated nodes, in dependency order."""

from pathlib import Path

from pergola.sandbox import control
from pergola.sandbox.components import ALL, APISERVER, CONTROLLER_MANAGER, ETCD, KWOK, Components
from pergola.sandbox.progress import Progress
from pergola.sandbox.readiness import Readiness


async def bring_up(
    directory: Path, kubeconfig: Path, components: Components, progress: Progress
) -> None:
    """Start the components, and return when they are ready.

    Raises:
        SandboxError: a component does not start.
    """
    readiness = Readiness(directory, kubeconfig)
    progress("starting etcd and kube-apiserver")
    for component in (ETCD, APISERVER):
        await control.command(directory, "start", component)
    await readiness.of_apiserver()
    rest = [c for c in ALL if c in components and c not in (ETCD, APISERVER)]
    if rest:
        progress(f"starting {', '.join(rest)}")
    for component in rest:
        await control.command(directory, "start", component)
    if KWOK in components:
        await readiness.of_nodes()
    if CONTROLLER_MANAGER in components:
        await readiness.of_controllers()
    await control.command(directory, "ready")
