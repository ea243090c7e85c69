"""A cluster for a Seed with a real node, on which all of its pods run.

Its pods reach the virtual cluster of a Garden by its public name, through a port that this machine
offers. Only the extensions of a provider are missing, so success is reported for their resources.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pergola.api.kinds import CONFIG_MAP, NODE, POD, SERVICE
from pergola.api.objects import JsonObject, Key, maps_at, name_of
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.runtime.caching.cache import Cache
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.unit import Controller
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics
from pergola.runtime.task_group import together
from pergola.sandbox import WITH_NODE, Sandbox, start
from pergola.sandbox.images import build
from pergola.sandbox.images.catalogue import SEED_IMAGES, named
from pergola.sandbox.late_kinds import whole
from pergola.sandbox.node.forwarder import MACHINE
from pergola.sandbox.node.image_import import import_offers
from pergola.sandbox.process_node.routes import Endpoint
from pergola.sandbox.process_node.tunnel import Tunnel
from pergola.sandbox.progress import Progress, silent
from pergola.sandbox.pumping import Connections, Stream, join
from pergola.sandbox.simulated import running
from pergola.sandbox.simulated.reported import ReportedTypes, reporter_unit

_HTTPS: Final = 443
_SOCKET: Final = "gateway.sock"
_GATEWAY: Final = Key("istio-ingress", "istio-ingressgateway")
_DNS: Final = Key("kube-system", "coredns")
_DNS_PODS: Final = "k8s-app=kube-dns"
_PUBLISHED: Final = "sandbox.pergola.dev/published"
_ZONE: Final = "topology.kubernetes.io/zone"


@dataclass(frozen=True)
class NodeSite:
    """A cluster with a real node, while it serves.

    Attributes:
        sandbox: its control plane and node.
        client: the administrator's.
        proxy: the URL of a proxy to API servers behind its gateway.
    """

    sandbox: Sandbox
    client: Client
    proxy: str

    @property
    def directory(self) -> Path:
        """The folder with the logs of pods, `pod-logs/<namespace>_<pod>_<uid>`."""
        return self.sandbox.directory

    def reach(self, config: ClusterConfig) -> ClusterConfig:
        """Return how a program outside reaches an API server behind the gateway."""
        return replace(config, proxy_url=self.proxy)


@dataclass(frozen=True)
class PublicServer:
    """A server of another cluster that pods connect to by its public name.

    Attributes:
        host: its name.
        find: returns where it is on this machine, or None while it is down.
    """

    host: str
    find: Callable[[], Endpoint | None]


@asynccontextmanager
async def seed_node(
    name: str,
    server: PublicServer,
    zone: str,
    reported: ReportedTypes,
    progress: Progress = silent,
    *,
    flags: tuple[str, ...] = (),
) -> AsyncGenerator[NodeSite]:
    """Start a cluster with a node for a Seed, and stop it when the block ends.

    Args:
        name: of the sandbox.
        server: the API server of the Garden's virtual cluster.
        zone: of the node.
        reported: the types of extension resources that are reported as successful, by kind.
        flags: more flags of its API server.

    Raises:
        SandboxError: it cannot be started, or an image cannot be built.
    """
    images = named(SEED_IMAGES)
    await asyncio.to_thread(build.build, images, progress)
    async with AsyncExitStack() as stack:
        sandbox = await start(name, components=WITH_NODE, apiserver_flags=flags, progress=progress)
        stack.push_async_callback(sandbox.stop)
        client = await stack.enter_async_context(Client.connect(load(sandbox.kubeconfig)))
        progress("importing the images of a Seed")
        # Later, each import would be between two tasks of gardenlet that wait for its pods.
        await together(
            import_offers(sandbox.directory, images),
            stack.enter_async_context(_offered(sandbox, client, server)),
            _label(client, zone),
        )
        services = Cache(client, SERVICE, whole, namespace=_GATEWAY.namespace)
        units = (
            reporter_unit(client, reported, monitoring=False),
            Controller("gateway", _nothing, watches=[Watch(services)], metrics=Metrics()),
        )
        await stack.enter_async_context(running(units))
        tunnel = Tunnel(lambda _, port: _gateway(services, port))
        proxy = await stack.enter_async_context(tunnel.serving(sandbox.directory / _SOCKET))
        yield NodeSite(sandbox, client, proxy)


async def _nothing(_: Key) -> Outcome:
    """Do nothing: the controller only fills its cache."""
    return DONE


def _gateway(services: Cache[JsonObject], port: int) -> Endpoint | None:
    """Return the address of the gateway, which is on this machine."""
    service = services.get(_GATEWAY) or {}
    addresses = (str(each["ip"]) for each in maps_at(service, "status", "loadBalancer", "ingress"))
    return next((Endpoint(address, port) for address in addresses), None)


async def _label(client: Client, zone: str) -> None:
    for node in await client.list(NODE, metadata_only=True):
        await client.patch(NODE, Key("", name_of(node)), {"metadata": {"labels": {_ZONE: zone}}})


@asynccontextmanager
async def _offered(sandbox: Sandbox, client: Client, server: PublicServer) -> AsyncGenerator[None]:
    """Let pods connect to a server until the block ends."""
    connections = Connections()

    async def serve(caller: Stream) -> None:
        try:
            with suppress(OSError):
                found = server.find()
                if found is not None:
                    await join(caller, Stream(*await asyncio.open_connection(*found)))
        finally:
            caller.writer.close()

    listening = await asyncio.start_server(connections.served_by(serve), "127.0.0.1", 0)
    try:
        [own, *_] = listening.sockets
        await sandbox.offer(own.getsockname()[1], _HTTPS)
        await _publish(client, server.host)
        yield
    finally:
        listening.close()
        await connections.end()


async def _publish(client: Client, host: str) -> None:
    """Let the cluster's DNS know a name of this machine."""
    await client.patch(CONFIG_MAP, _DNS, {"data": {"hosts": f"{MACHINE} {host}\n"}})
    # A change of a pod lets the kubelet mount the file now instead of up to a minute later.
    for pod in await client.list(POD, _DNS.namespace, labels=_DNS_PODS, metadata_only=True):
        annotation = {"metadata": {"annotations": {_PUBLISHED: host}}}
        await client.patch(POD, Key.of(pod), annotation)
