"""A living Garden on a real node, as programs on this machine reach it."""

from dataclasses import dataclass, replace
from typing import Final, Self
from urllib.parse import urlsplit

from pergola.api.kinds import SERVICE
from pergola.api.objects import JsonObject, Key, map_at
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig
from pergola.sandbox import Sandbox

_API_SERVER: Final = Key("garden", "virtual-garden-kube-apiserver")
_PORT: Final = 443


@dataclass(frozen=True)
class NodeGarden:
    """A `LivingGarden`, whose virtual API server is forwarded.

    Attributes:
        client: The administrator's client of the runtime cluster.
        port: The port of this machine that leads to the virtual API server.
    """

    client: Client
    port: int

    @classmethod
    async def of(cls, sandbox: Sandbox, client: Client) -> Self:
        """Forward the virtual API server, which exists by now."""
        service = await client.get(SERVICE, _API_SERVER)
        return cls(client, await sandbox.forward(map_at(service, "spec")["clusterIP"], _PORT))

    def reach(self, config: ClusterConfig) -> ClusterConfig:
        """Return how this machine reaches the virtual API server."""
        host = urlsplit(config.server).hostname
        return replace(config, server=f"https://127.0.0.1:{self.port}", tls_server_name=host)


def is_healthy(garden: JsonObject) -> bool:
    """Return whether all conditions of a Garden hold."""
    return all(each["status"] == "True" for each in map_at(garden, "status")["conditions"])
