"""The health endpoint of the virtual cluster's API server (spec 21 §2.3, §5.4)."""

from typing import Final, NamedTuple, Protocol

from pergola.kube.client import Client
from pergola.kube.errors import ApiError, ConfigurationError, KubeError
from pergola.operator.virtual_cluster import NotConnected, VirtualCluster
from pergola.runtime.clock import monotonic
from pergola.runtime.logging import get_logger

log = get_logger("garden-care")

OK: Final = 200
_HEALTH: Final = "/healthz"
_LONGEST: Final = 500
"""The number of bytes of an answer to report."""


class Probe(NamedTuple):
    """The answer of an API server's health endpoint.

    Attributes:
        code: The HTTP status; 0 if there was no answer.
        text: The body of the answer, or why there is none.
        seconds: The response time.
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
    """The API server of the virtual cluster, according to the current kubeconfig in a Secret."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self._cluster = cluster

    async def probe(self) -> Probe | None:
        """Request `/healthz`; return None while the Secret has no usable kubeconfig."""
        try:
            client = await self._cluster.client()
            return await _answer(client)
        except (NotConnected, ConfigurationError) as error:
            log.info("no access to the virtual cluster", reason=str(error))
            return None


async def _answer(client: Client) -> Probe:
    began = monotonic()
    try:
        body = await client.get_raw(_HEALTH)
    except ApiError as error:
        # The operator wrote the kubeconfig, so the text is that of the Garden's own API server.
        text = error.body[:_LONGEST].decode(errors="replace") or str(error)
        return Probe(error.code, text, monotonic() - began)
    except ConfigurationError:
        raise
    except KubeError as error:
        return Probe(0, str(error), monotonic() - began)
    return Probe(OK, body.decode(errors="replace"), monotonic() - began)
