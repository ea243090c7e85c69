"""The health endpoint of the virtual cluster's API server (spec 21 §2.3, §5.4)."""

import asyncio
from typing import Final, NamedTuple, Protocol

from pergola.api.kinds import SECRET
from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, ConfigurationError, KubeError
from pergola.kube.selectors import format_selector
from pergola.operator.components.virtual_access import requests_token
from pergola.operator.garden.landscape import NAMESPACE
from pergola.operator.virtual_cluster import NotConnected, Reach, VirtualCluster, kubeconfig_in
from pergola.runtime.caching.cache import Cache
from pergola.runtime.clock import monotonic
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.logging import get_logger

log = get_logger("garden-care")

NAME: Final = "virtual-garden-api-server"
OK: Final = 200
_HEALTH: Final = "/healthz"
_WITH_TOKENS: Final = format_selector({"matchLabels": requests_token()})


class Probe(NamedTuple):
    """The answer of an API server's health endpoint.

    Attributes:
        code: The HTTP status; 0 if there was no answer.
        text: What the answer says, or why there is none.
        seconds: How long it took.
    """

    code: int
    text: str = ""
    seconds: float = 0.0


class HealthEndpoint(Protocol):
    """The health endpoint of an API server."""

    async def probe(self) -> Probe | None:
        """Request it; return None without access to the API server."""
        ...


class VirtualApiServer:
    """The API server of the virtual cluster, by the kubeconfig that a Secret has now.

    The Secret is watched: a run of care reads nothing, and the first request after a change uses
    the new kubeconfig.

    Args:
        client: Of the runtime cluster.
        reach: Changes how the API server is reached, such as from outside the runtime cluster.

    Attributes:
        unit: Keeps the kubeconfig up to date; has to run.
    """

    def __init__(self, client: Client, *, reach: Reach | None = None) -> None:
        self._kubeconfigs = Cache(
            client, SECRET, kubeconfig_in, namespace=NAMESPACE, labels=_WITH_TOKENS
        )
        self._cluster = VirtualCluster(client, reach=reach, read=self._read)
        self.unit = Unit(NAME, caches=[self._kubeconfigs], tasks=[self._keep_open])

    async def probe(self) -> Probe | None:
        """Request `/healthz`; return None as long as the Secret has no usable kubeconfig."""
        try:
            client = await self._cluster.client()
            return await _answer(client)
        except (NotConnected, ConfigurationError) as error:
            log.info("no access to the virtual cluster", reason=str(error))
            return None

    async def _read(self, name: str) -> bytes:
        await self._kubeconfigs.synced()
        return self._kubeconfigs.get(Key(NAMESPACE, name)) or b""

    async def _keep_open(self) -> None:
        """Close the connection in the end."""
        try:
            await asyncio.Event().wait()
        finally:
            await self._cluster.close()


async def _answer(client: Client) -> Probe:
    began = monotonic()
    try:
        body = await client.get_raw(_HEALTH)
    except ApiError as error:
        return Probe(error.code, str(error), monotonic() - began)
    except ConfigurationError:
        raise
    except KubeError as error:
        return Probe(0, str(error), monotonic() - began)
    return Probe(OK, body.decode(errors="replace"), monotonic() - began)
