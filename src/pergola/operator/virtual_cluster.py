"""The operator's access to the virtual cluster (spec 20 §15.5, spec 21 §5.4).

The resource manager of the virtual cluster writes a token into the kubeconfig of a Secret. Another
kubeconfig, as after the renewal of the token, gives another client.
"""

import asyncio
import base64
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at
from pergola.kube.client import Client
from pergola.kube.credentials import Anonymous
from pergola.kube.kubeconfig import ClusterConfig, parse_cluster
from pergola.operator.components.gardener_access import EXTERNAL, INTERNAL
from pergola.operator.garden.errors import OperatorError
from pergola.operator.garden.landscape import NAMESPACE

Reach = Callable[[ClusterConfig], ClusterConfig]
"""Returns how to reach an API server, such as by another address."""

Read = Callable[[str], Awaitable[bytes]]
"""Returns the kubeconfig in the Secret of a name, empty if there is none."""


class NotConnected(OperatorError):
    """The virtual cluster cannot be reached yet; the text says what is missing."""


class VirtualCluster:
    """A client of the virtual cluster that is rebuilt when its kubeconfig changes.

    Args:
        runtime: A client of the runtime cluster, which has the kubeconfig.
        qps, burst: Limits of the client.
        reach: Changes how the API server is reached, such as from outside the runtime cluster.
        read: Returns kubeconfigs; by default they are read from the runtime cluster for each use.
    """

    def __init__(
        self,
        runtime: Client,
        *,
        qps: float | None = None,
        burst: int | None = None,
        reach: Reach | None = None,
        read: Read | None = None,
    ) -> None:
        self._runtime = runtime
        self._source = read or self._live
        self._qps = qps
        self._burst = burst
        self._reach = reach or (lambda config: config)
        self._kubeconfig = b""
        self._client: Client | None = None
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the client, as when the virtual cluster goes away."""
        client, self._client, self._kubeconfig = self._client, None, b""
        if client is not None:
            await client.close()

    async def client(self) -> Client:
        """Return a client of the virtual cluster.

        Raises:
            NotConnected: There is no kubeconfig with a token yet.
            KubeError: The runtime cluster refused, or did not answer.
        """
        async with self._lock:
            kubeconfig = await self._read(INTERNAL)
            if self._client is None or kubeconfig != self._kubeconfig:
                config = await self._config(kubeconfig)
                await self.close()
                self._client = Client.connect(config, qps=self._qps, burst=self._burst)
                self._kubeconfig = kubeconfig
            return self._client

    async def _config(self, internal: bytes) -> ClusterConfig:
        """Return the cluster: by its Service, or by its public name where that is unknown."""
        config = self._reach(_with_token(internal, INTERNAL))
        # A proxy resolves names itself.
        if config.proxy_url or await _is_known(config.server):
            return config
        return self._reach(_with_token(await self._read(EXTERNAL), EXTERNAL))

    async def _read(self, name: str) -> bytes:
        content = await self._source(name)
        if not content:
            raise NotConnected(f"Secret {NAMESPACE}/{name} has no kubeconfig yet")
        return content

    async def _live(self, name: str) -> bytes:
        secret = await self._runtime.find(SECRET, Key(NAMESPACE, name))
        return kubeconfig_in(secret or {})


def kubeconfig_in(secret: JsonObject) -> bytes:
    """Return the kubeconfig in a Secret; empty if it has none, or one that is not base64."""
    with suppress(ValueError):
        return base64.b64decode(str(map_at(secret, "data").get("kubeconfig") or ""))
    return b""


def _with_token(content: bytes, name: str) -> ClusterConfig:
    config = parse_cluster(content, f"Secret {NAMESPACE}/{name}")
    if isinstance(config.credentials, Anonymous):
        raise NotConnected("token for virtual garden kubeconfig was not populated yet")
    return config


async def _is_known(server: str) -> bool:
    host = urlsplit(server).hostname
    try:
        await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return True
