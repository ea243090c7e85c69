"""A process node: controller, tunnel and selection together."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics
from pergola.sandbox import binaries
from pergola.sandbox.components import Components
from pergola.sandbox.process_node.observe import Observed
from pergola.sandbox.process_node.place import Place
from pergola.sandbox.process_node.pods import Pods, Setup
from pergola.sandbox.process_node.programs import (
    OPTIONAL,
    REQUIRED,
    NodeEnvironment,
    Programs,
    programs,
    repositories,
)
from pergola.sandbox.process_node.routes import Routes
from pergola.sandbox.process_node.selection import apply_selection
from pergola.sandbox.process_node.tunnel import Tunnel, write_egress

_WORKERS: Final = 4
_SOCKET: Final = "tunnel.sock"
_EGRESS: Final = "egress.yaml"


@dataclass(frozen=True)
class ProcessNode:
    """A running node.

    Attributes:
        unit: its controller, which the caller runs.
        proxy: the URL of a proxy to them, for kubeconfigs.
    """

    unit: Unit
    proxy: str


def api_server_flags(directory: Path, *, by_url: bool = False) -> tuple[str, ...]:
    """Return the flags of a sandbox whose API server calls webhooks of a node's processes.

    Args:
        directory: of the node.
        by_url: call those that are registered by URL, too, and webhooks that authorize requests.
    """
    connections = ("cluster", "controlplane") if by_url else ("cluster",)
    file = write_egress(directory / "webhooks.yaml", directory / _SOCKET, *connections)
    return (f"--egress-selector-config-file={file}",)


@asynccontextmanager
async def process_node(
    client: Client,
    kubeconfig: Path,
    directory: Path,
    namespace: str,
    *,
    more: Components = (),
    own: Programs = MappingProxyType({}),
    volumes: Path | None = None,
) -> AsyncGenerator[ProcessNode]:
    """Serve a node for one namespace until the block ends, and stop all of its processes.

    Args:
        client: the administrator's.
        kubeconfig: of the administrator; processes reach the API server at its address.
        directory: of the files of its processes.
        more: programs to run in addition to those of every node.
        own: the same for programs that need not be built.
        volumes: the folder for the data of claims, which outlives the node; by default it is in
            the other directory.
    """
    found = {**await asyncio.to_thread(_find_programs, more), **own}
    await apply_selection(client, namespace, repositories(found))
    observed = Observed(client, namespace)
    places: dict[Key, Place] = {}
    routes = Routes(observed, namespace, places)
    async with Tunnel(routes.resolve).serving(directory / _SOCKET) as proxy:
        connections = ("etcd", "cluster", "controlplane")
        egress = write_egress(directory / _EGRESS, directory / _SOCKET, *connections)
        environment = NodeEnvironment(directory, egress, proxy)
        setup = Setup(directory, volumes or directory / "claims", found, environment)
        pods = Pods(client, load(kubeconfig), observed, setup, places)
        try:
            yield ProcessNode(_unit(observed, pods), proxy)
        finally:
            await pods.close()


def _find_programs(more: Components) -> Programs:
    """Return all required programs, built if necessary, and the optional ones that exist."""
    return programs(binaries.find((*REQUIRED, *more)) | binaries.present(OPTIONAL))


def _unit(observed: Observed, pods: Pods) -> Unit:
    exits: Watch[Key, Key] = Watch(pods.exits, to=lambda workload: (workload,))
    return Controller(
        "process-node",
        pods.reconcile,
        watches=[*observed.watches(), exits],
        metrics=Metrics(),
        workers=_WORKERS,
        caches=observed.caches,
        tasks=[pods.events.run],
    )
