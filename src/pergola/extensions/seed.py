"""The reads of webhooks on the seed; they are not cached.

A seed has hundreds of Clusters of a hundred kilobytes each, and a webhook needs one of them only
when gardenlet writes an object that depends on it.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from pergola.api.ip_ranges import parse_address, unmapped
from pergola.api.kinds import POD
from pergola.api.objects import GroupVersionKind, JsonObject, Key, namespace_of
from pergola.extension_api.cluster import CLUSTER, Cluster, MalformedCluster, Shoot
from pergola.extension_api.errors import ExtensionError
from pergola.extensions.shoot_access import shoot_client
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.selectors import format_selector

ShootAccess = Callable[[Client, Cluster], AbstractAsyncContextManager[Client | None]]
"""Opens a client for a Shoot; yields None while it has no API server."""

_API_SERVERS: Final = {"matchLabels": {"app": "kubernetes", "role": "apiserver"}}


class Seed:
    """The seed, for declaring webhooks.

    Args:
        access: opens clients for Shoots.
    """

    def __init__(self, client: Client, access: ShootAccess = shoot_client) -> None:
        self._client = client
        self._access = access

    async def find(self, gvk: GroupVersionKind, key: Key) -> JsonObject | None:
        """Return an object; None if there is none.

        Raises:
            KubeError: the API server refused, or did not answer.
        """
        return await self._client.find(gvk, key)

    async def shoot(self, namespace: str) -> Shoot:
        """Return the Shoot of a namespace.

        Raises:
            ExtensionError: the namespace belongs to none.
            KubeError: the API server refused, or did not answer.
        """
        cluster = await self._cluster(namespace)
        if cluster.shoot is None:
            raise ExtensionError(
                f"Cluster {namespace} has no Shoot: wait until gardenlet writes it"
            )
        return cluster.shoot

    @asynccontextmanager
    async def caller(self, peer: str) -> AsyncGenerator[Client | None]:
        """Connect to the Shoot whose API server has an address; yield None if it sleeps.

        Args:
            peer: the address from which a review was sent.

        Raises:
            ExtensionError: no pod of an API server has the address, or the Shoot is not accessible.
            KubeError: the API server of the seed refused, or did not answer.
        """
        pods = await self._client.list(
            POD, labels=format_selector(_API_SERVERS), fields=f"status.podIP={_address_of(peer)}"
        )
        namespaces = {namespace_of(pod) for pod in pods}
        if len(namespaces) != 1:
            raise ExtensionError(
                f"the request comes from {peer}, which is the address of "
                f"{'several API servers' if namespaces else 'no API server of a Shoot'}"
            )
        cluster = await self._cluster(namespaces.pop())
        async with self._access(self._client, cluster) as shoot:
            yield shoot

    async def _cluster(self, namespace: str) -> Cluster:
        try:
            return Cluster.from_object(await self._client.get(CLUSTER, Key("", namespace)))
        except NotFound:
            raise ExtensionError(
                f"there is no Cluster {namespace or 'without a name'}: the namespace belongs to "
                "no Shoot"
            ) from None
        except MalformedCluster as error:
            raise ExtensionError(str(error)) from None


def _address_of(peer: str) -> str:
    """Return an address as pods have it: a socket for both IP versions shows IPv4 within IPv6."""
    try:
        return str(unmapped(parse_address(peer)))
    except ValueError:
        raise ExtensionError(f'the request comes from an unknown address: "{peer}"') from None
