"""A process node: controller, tunnel and selection together."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
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
from pergola.sandbox.process_node.routes import ResolvePublic, Routes
from pergola.sandbox.process_node.selection import apply_selection
from pergola.sandbox.process_node.tunnel import Tunnel, write_egress

_WORKERS: Final = 4
_SOCKET: Final = "tunnel.sock"
_EGRESS: Final = "egress.yaml"
_CONNECTIONS: Final = ("etcd", "cluster", "controlplane")


@dataclass(frozen=True)
class ProcessNode:
    """A running node.

    Attributes:
        unit: its controller, which the caller runs.
        proxy: the URL of a proxy to its processes, for kubeconfigs.
        resolve_public: returns where a connection to a name leads that a gateway passes on.
    """

    unit: Unit
    proxy: str
    resolve_public: ResolvePublic


@dataclass(frozen=True, kw_only=True)
class NodeSettings:
    """The pods that a node runs, and where their connections and data go.

    Attributes:
        namespace: of the pods; None for all namespaces.
        more: programs to run in addition to those of every node.
        own: the same for programs that need not be built.
        volumes: the folder for the data of claims, which outlives the node; by default it is in
            the node's directory.
        beyond: resolves public names of another cluster.
    """

    namespace: str | None
    more: Components = ()
    own: Programs = field(default_factory=dict)
    volumes: Path | None = None
    beyond: ResolvePublic | None = None


class _Environments:
    """The environments of namespaces, each with a tunnel of its own that knows its names."""

    def __init__(self, directory: Path, routes: Routes, tunnels: AsyncExitStack) -> None:
        self._directory = directory
        self._routes = routes
        self._tunnels = tunnels
        self._lock = asyncio.Lock()
        self._made: dict[str, NodeEnvironment] = {}

    async def of(self, namespace: str) -> NodeEnvironment:
        async with self._lock:
            if namespace not in self._made:
                self._made[namespace] = await self._make(namespace)
            return self._made[namespace]

    async def _make(self, namespace: str) -> NodeEnvironment:
        # A number, because the path of a socket must be short.
        directory = self._directory / f"t{len(self._made)}"
        directory.mkdir(mode=0o700)
        socket = directory / _SOCKET
        tunnel = Tunnel(self._routes.seen_from(namespace))
        proxy = await self._tunnels.enter_async_context(tunnel.serving(socket))
        egress = write_egress(directory / _EGRESS, socket, *_CONNECTIONS)
        return NodeEnvironment(directory, egress, proxy)


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
    settings: NodeSettings,
) -> AsyncGenerator[ProcessNode]:
    """Serve a node until the block ends, and stop all of its processes.

    Args:
        client: the administrator's.
        kubeconfig: of the administrator; processes reach the API server at its address.
        directory: of the files of its processes.
    """
    found = {**await asyncio.to_thread(_find_programs, settings.more), **settings.own}
    await apply_selection(client, settings.namespace, repositories(found))
    observed = Observed(client, settings.namespace)
    places: dict[Key, Place] = {}
    routes = Routes(observed, places, settings.beyond)
    async with AsyncExitStack() as tunnels:
        environments = _Environments(directory, routes, tunnels)
        # The API server of the cluster uses full names, so any namespace serves it.
        tunnel = Tunnel(routes.seen_from(settings.namespace or "default"))
        proxy = await tunnels.enter_async_context(tunnel.serving(directory / _SOCKET))
        claims = settings.volumes or directory / "claims"
        setup = Setup(directory, claims, found, environments.of)
        pods = Pods(client, load(kubeconfig), observed, setup, places)
        try:
            yield ProcessNode(_unit(observed, pods), proxy, routes.resolve_public)
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
