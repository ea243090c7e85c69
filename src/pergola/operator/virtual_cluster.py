"""The operator's access to the virtual cluster (spec 20 §15.5, spec 21 §5.4).

The resource manager of the virtual cluster writes a token into the kubeconfig of a Secret, and
renews it; its authorities change when they are rotated. A client survives both.
"""

import asyncio
import base64
import math
import socket
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlsplit

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at
from pergola.garden.components.gardener_access import EXTERNAL, INTERNAL
from pergola.garden.landscape import NAMESPACE
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client
from pergola.kube.credentials import Anonymous
from pergola.kube.errors import KubeError
from pergola.kube.kubeconfig import ClusterConfig, parse_cluster
from pergola.kube.renewable import Renewable
from pergola.kube.transport import Observer, unobserved
from pergola.runtime.controlling.spans import work_until
from pergola.runtime.task_group import gathered

Reach = Callable[[ClusterConfig], ClusterConfig]
"""Maps the configuration of an API server, for example to another address."""

Resolve = Callable[[str], Awaitable[bool | None]]
"""Returns whether a host name has an address; None if no resolver answered."""

_NO_ANSWER: Final = (socket.EAI_AGAIN, socket.EAI_FAIL)


class NotConnected(OperatorError):
    """The virtual cluster is not reachable yet; the text says what is missing."""


class Kubeconfigs(NamedTuple):
    """The kubeconfigs of the virtual cluster.

    Attributes:
        internal: With the address of a Service of the runtime cluster; empty if there is none.
        external: With the public host, for processes outside the cluster.
    """

    internal: bytes = b""
    external: bytes = b""


class VirtualCluster:
    """A client of the virtual cluster that survives the renewal of its token and authority.

    Another server requires another client.

    Args:
        runtime: A client of the runtime cluster, for reading the kubeconfig at each use. qps,
            burst: Limits of the client.
        observe: Called for each answer of the virtual cluster.
        resolve: Looks up the host of the Service.
        patience: The seconds until it is looked up again if no resolver answered.

    Attributes:
        reach: Modifies how the API server is reached, for example from outside the runtime cluster.
    """

    def __init__(
        self,
        runtime: Client,
        *,
        qps: float | None = None,
        burst: int | None = None,
        reach: Reach | None = None,
        observe: Observer = unobserved,
        resolve: Resolve | None = None,
        patience: float = 60.0,
    ) -> None:
        self._runtime = runtime
        self._resolve = resolve or _is_known
        self._patience = patience
        self._next_attempt = math.inf
        self._connect = partial(Client.connect, qps=qps, burst=burst, observe=observe)
        self.reach: Reach = reach or (lambda config: config)
        self._kubeconfigs = Kubeconfigs()
        self._connection: _Connection | None = None
        self._lock = asyncio.Lock()
        self._changed = asyncio.Event()

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
        """Close the client, for example when the virtual cluster is deleted."""
        connection, self._connection = self._connection, None
        self._kubeconfigs = Kubeconfigs()
        if connection is not None:
            self._notify()
            await connection.client.close()

    async def while_connected(self, work: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
        """Run `work` for each client that `client` creates, until the client is replaced."""
        while True:
            client = await self.connected()
            await work_until(self.replaced(client), work(client))
            # Completed work is not repeated for the same client.
            await self.replaced(client)

    async def connected(self) -> Client:
        """Return the client once `client` has created one."""
        while self._connection is None:
            await self._changed.wait()
        return self._connection.client

    async def replaced(self, client: Client) -> None:
        """Return once a client is no longer the current one because it was closed or replaced."""
        while self._connection is not None and self._connection.client is client:
            await self._changed.wait()

    async def client(self) -> Client:
        """Return a client of the virtual cluster, with the current token and authority.

        Raises:
            NotConnected: There is no kubeconfig with a token yet.
            ConfigurationError: The kubeconfig cannot be used.
            KubeError: The runtime cluster refused, or did not answer.
        """
        async with self._lock:
            connection = await self._current(await self._read(self._runtime))
            return connection.client

    async def _current(self, kubeconfigs: Kubeconfigs) -> "_Connection":
        """Return the connection for these kubeconfigs: the same one if the server is unchanged."""
        is_due = asyncio.get_running_loop().time() >= self._next_attempt
        if self._connection is not None and kubeconfigs == self._kubeconfigs and not is_due:
            return self._connection
        config = await self._config(kubeconfigs)
        if self._connection is not None and self._connection.fits(config):
            await self._connection.renew(config)
        else:
            await self.close()
            credentials = Renewable(config.credentials, self._read_again)
            client = self._connect(replace(config, credentials=credentials))
            self._connection = _Connection(client, config, credentials)
            self._notify()
        self._kubeconfigs = kubeconfigs
        return self._connection

    async def _read_again(self) -> None:
        """Read the kubeconfigs by requests, because the API server rejected the token."""
        async with self._lock:
            with suppress(KubeError, NotConnected):
                found = await self._read(self._runtime.live)
                if self._connection is not None and found != self._kubeconfigs:
                    await self._current(found)

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _config(self, kubeconfigs: Kubeconfigs) -> ClusterConfig:
        """Return the cluster, by its Service or, if that is unknown, by its public name.

        While no resolver answers, the last address stays; the public one lasts until one does.
        """
        config = self.reach(_with_token(kubeconfigs.internal, INTERNAL))
        self._next_attempt = math.inf
        # A proxy resolves names itself.
        if config.proxy_url:
            return config
        known = await self._resolve(urlsplit(config.server).hostname or "")
        current = self._connection.config.server if self._connection else ""
        if known or (known is None and current == config.server):
            return config
        if known is None:
            self._next_attempt = asyncio.get_running_loop().time() + self._patience
        return self.reach(_with_token(kubeconfigs.external, EXTERNAL))

    async def _read(self, runtime: Client) -> Kubeconfigs:
        internal, external = await gathered(
            runtime.find(SECRET, Key(NAMESPACE, name)) for name in (INTERNAL, EXTERNAL)
        )
        return Kubeconfigs(kubeconfig_in(internal or {}), kubeconfig_in(external or {}))


class _Connection(NamedTuple):
    """A client, and its connection settings."""

    client: Client
    config: ClusterConfig
    credentials: Renewable

    def fits(self, config: ClusterConfig) -> bool:
        """Return whether another configuration has the same server, reached in the same way."""
        return self.config == replace(
            config, ca=self.config.ca, credentials=self.config.credentials
        )

    async def renew(self, config: ClusterConfig) -> None:
        """Use the token and the authority of another configuration."""
        self.credentials.renew(config.credentials)
        await self.client.trust(config.ca)


def kubeconfig_in(secret: JsonObject) -> bytes:
    """Return the kubeconfig in a Secret; empty if it has none, or one that is not base64."""
    with suppress(ValueError):
        return base64.b64decode(str(map_at(secret, "data").get("kubeconfig") or ""))
    return b""


def _with_token(content: bytes, name: str) -> ClusterConfig:
    if not content:
        raise NotConnected(f"Secret {NAMESPACE}/{name} has no kubeconfig yet")
    config = parse_cluster(content, f"Secret {NAMESPACE}/{name}")
    if isinstance(config.credentials, Anonymous):
        raise NotConnected("token for virtual garden kubeconfig was not populated yet")
    return config


async def _is_known(host: str) -> bool | None:
    try:
        await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return None if error.errno in _NO_ANSWER else False
    except (OSError, UnicodeError):
        return False
    return True
