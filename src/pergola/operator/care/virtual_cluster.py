"""The health endpoint of the virtual cluster's API server (spec 21 §2.3, §5.4)."""

import asyncio
import base64
import binascii
from typing import Final, NamedTuple, Protocol

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at
from pergola.kube.client import Client
from pergola.kube.credentials import Anonymous
from pergola.kube.errors import ApiError, ConfigurationError, KubeError
from pergola.kube.kubeconfig import ClusterConfig, parse_cluster
from pergola.kube.selectors import select_name
from pergola.operator.components.gardener_access import INTERNAL
from pergola.operator.garden.landscape import NAMESPACE
from pergola.runtime.caching.cache import Cache
from pergola.runtime.clock import monotonic
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.logging import get_logger

log = get_logger("garden-care")

OK: Final = 200
_HEALTH: Final = "/healthz"


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


class VirtualCluster(Protocol):
    """The virtual cluster, as far as its health is concerned."""

    async def probe(self) -> Probe | None:
        """Request the health endpoint; return None without credentials to do so."""
        ...


class VirtualApiServer:
    """The API server of the virtual cluster, by the kubeconfig that a Secret has now.

    The Secret is watched: the first request after its kubeconfig has changed uses the new one.

    Args:
        client: Of the runtime cluster.
        secret: Has a kubeconfig under the key `kubeconfig`.

    Attributes:
        unit: Keeps the kubeconfig up to date; has to run.
    """

    def __init__(self, client: Client, secret: Key = Key(NAMESPACE, INTERNAL)) -> None:  # noqa: B008
        self._secret = secret
        self._kubeconfigs = Cache(
            client,
            SECRET,
            _kubeconfig,
            namespace=secret.namespace,
            fields=select_name(secret.name),
        )
        self._used = b""
        self._client: Client | None = None
        self.unit = Unit(
            "virtual-garden-api-server", caches=[self._kubeconfigs], tasks=[self._keep_open]
        )

    async def probe(self) -> Probe | None:
        """Request `/healthz`; return None as long as the Secret has no usable kubeconfig."""
        await self._kubeconfigs.synced()
        client = await self._connected(self._kubeconfigs.get(self._secret) or b"")
        if client is None:
            return None
        began = monotonic()
        try:
            body = await client.get_raw(_HEALTH)
        except ApiError as error:
            return Probe(error.code, str(error), monotonic() - began)
        except ConfigurationError as error:
            log.error("kubeconfig is not usable", secret=str(self._secret), error=str(error))
            return None
        except KubeError as error:
            return Probe(0, str(error), monotonic() - began)
        return Probe(OK, body.decode(errors="replace"), monotonic() - began)

    async def _connected(self, kubeconfig: bytes) -> Client | None:
        if kubeconfig != self._used:
            await self._close()
            self._used = kubeconfig
            config = _parsed(self._secret, kubeconfig) if kubeconfig else None
            self._client = Client.connect(config) if config else None
        return self._client

    async def _keep_open(self) -> None:
        """Close the connection in the end."""
        try:
            await asyncio.Event().wait()
        finally:
            await self._close()

    async def _close(self) -> None:
        client, self._client, self._used = self._client, None, b""
        if client is not None:
            await client.close()


def _kubeconfig(secret: JsonObject) -> bytes:
    """Return the kubeconfig in a Secret; empty if it has none, or one that is not base64."""
    try:
        return base64.b64decode(str(map_at(secret, "data").get("kubeconfig") or ""), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _parsed(secret: Key, kubeconfig: bytes) -> ClusterConfig | None:
    try:
        config = parse_cluster(kubeconfig, f"Secret {secret}")
    except ConfigurationError as error:
        log.error("kubeconfig is not usable", secret=str(secret), error=str(error))
        return None
    if isinstance(config.credentials, Anonymous):
        log.info("token for virtual garden kubeconfig was not populated yet", secret=str(secret))
        return None
    return config
