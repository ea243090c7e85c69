"""A living Garden on a real node, as programs on this machine reach it."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from pergola.api.kinds import SERVICE
from pergola.api.objects import Key, map_at, maps_at
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig
from pergola.sandbox import Sandbox
from pergola.sandbox.process_node.routes import Endpoint
from pergola.sandbox.process_node.tunnel import Tunnel
from tests.support.garden_world import example

_SERVERS: Final = {"virtual-garden-kube-apiserver": 443, "virtual-garden-etcd-main-client": 2379}
_GATEWAY: Final = Key("virtual-garden-istio-ingress", "istio-ingressgateway")


@dataclass(frozen=True)
class NodeGarden:
    """A `LivingGarden`, whose virtual API server and main etcd are forwarded.

    Attributes:
        client: The administrator's client of the runtime cluster.
        ports: The ports of this machine that lead to the Services of these servers.
    """

    client: Client
    ports: Mapping[str, int]

    @classmethod
    async def of(cls, sandbox: Sandbox, client: Client) -> Self:
        """Forward the servers, whose Services exist by now."""
        ports = {}
        for name, port in _SERVERS.items():
            service = await client.get(SERVICE, Key("garden", name))
            ports[name] = await sandbox.forward(map_at(service, "spec")["clusterIP"], port)
        return cls(client, ports)

    def reach(self, config: ClusterConfig) -> ClusterConfig:
        """Return how this machine reaches a server of the Garden."""
        host = urlsplit(config.server).hostname or ""
        port = self.ports[host.partition(".")[0]]
        return replace(config, server=f"https://127.0.0.1:{port}", tls_server_name=host)


@dataclass(frozen=True)
class GatewayGarden:
    """A `LivingGarden` reached as from outside: by its public name, through its gateway.

    Attributes:
        client: The administrator's client of the runtime cluster.
        proxy: The URL of a proxy that knows the address of the name.
    """

    client: Client
    proxy: str

    @classmethod
    @asynccontextmanager
    async def of(cls, client: Client, socket: Path) -> AsyncGenerator[Self]:
        """Resolve the name while the block lasts; the gateway has its address by now."""
        service = await client.get(SERVICE, _GATEWAY)
        [entry, *_] = maps_at(service, "status", "loadBalancer", "ingress")
        address = str(entry["ip"])
        async with Tunnel(lambda _, port: Endpoint(address, port)).serving(socket) as proxy:
            yield cls(client, proxy)

    def reach(self, config: ClusterConfig) -> ClusterConfig:
        """Return how a client outside reaches the virtual API server."""
        [domain, *_] = maps_at(example(), "spec", "virtualCluster", "dns", "domains")
        return replace(config, server=f"https://api.{domain['name']}", proxy_url=self.proxy)
