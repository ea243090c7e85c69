"""What the handlers ask of clusters: answered from caches where pods wait for it, live elsewhere.

A cache that is behind is never the reason to refuse a pod: what it does not know is read once from
the API server before a handler is told that it is not there (spec 12, Beyond 10).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from pergola.api.kinds import CONFIG_MAP, NODE, SERVICE, SERVICE_ACCOUNT
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.selectors import format_selector
from pergola.resource_manager.webhooks.high_availability_config.observe import (
    ClusterSurroundings,
)
from pergola.resource_manager.webhooks.high_availability_config.settings import NamespaceSettings
from pergola.resource_manager.webhooks.system_components_config import (
    Taint,
    in_order,
    taints_of,
)
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.caches import Caches
from pergola.runtime.controlling.unit import Watching


class Lookups(Protocol):
    """All that handlers may want to know; each method raises KubeError if it cannot say."""

    async def mounts_token(self, account: Key) -> bool:
        """Whether a ServiceAccount lets pods mount its token by themselves."""
        ...

    async def system_taints(self) -> Sequence[Taint]:
        """The taints of the nodes for system components, in a stable order.

        The same list is returned as long as it does not change.
        """
        ...

    async def namespace(self, name: str) -> NamespaceSettings:
        """What a namespace says about availability."""
        ...

    async def most_replicas(self, workload: GroupVersionKind, key: Key) -> int | None:
        """To how many replicas something scales a workload; None if nothing does."""
        ...

    async def many_nodes(self) -> bool:
        """Whether there is more than one node."""
        ...

    async def config_map(self, key: Key) -> JsonObject:
        """A ConfigMap as it is now."""
        ...

    async def service(self, key: Key) -> JsonObject:
        """A Service as it is now."""
        ...

    async def objects(self, gvk: GroupVersionKind, namespace: str, labels: str) -> list[JsonObject]:
        """All objects of a kind as they are now; of all namespaces, if that is empty."""
        ...


class ClusterLookups:
    """The look-ups in a cluster. As long as `caches` are not run, everything is read live.

    Args:
        client: of the cluster whose API server calls the webhooks.
        namespaces: where ServiceAccounts and autoscalers are watched; everywhere if empty.
        system_nodes: the labels of the nodes for system components; all nodes if empty.
        accounts: whether to watch ServiceAccounts.
        nodes: whether to watch nodes.
        availability: whether to watch what the high-availability webhook has to know.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespaces: Collection[str] = (),
        system_nodes: Mapping[str, str] | None = None,
        accounts: bool = True,
        nodes: bool = True,
        availability: bool = True,
    ) -> None:
        self._client = client
        self.availability = ClusterSurroundings(client, watched=namespaces)
        # Without labels, every Node is a system Node.
        self._system_nodes = format_selector({"matchLabels": dict(system_nodes or {})}) or None
        self._accounts = Caches(client, SERVICE_ACCOUNT, automounts, namespaces=namespaces)
        self._nodes = Cache(client, NODE, taints_of, labels=self._system_nodes)
        self._nodes.subscribe(self._node_changed)
        self._taints: Sequence[Taint] | None = None
        self.caches: tuple[Watching, ...] = (
            *(self._accounts if accounts else ()),
            *((self._nodes,) if nodes else ()),
            *(self.availability.caches if availability else ()),
        )

    async def mounts_token(self, account: Key) -> bool:
        """From the cache; live, if it is not there or not up to date."""
        known = self._accounts.get(account) if self._accounts.is_synced else None
        if known is not None:
            return known
        return automounts(await self._client.get(SERVICE_ACCOUNT, account))

    async def system_taints(self) -> Sequence[Taint]:
        """From the cache, put together once for each change of a taint; live if it is behind."""
        if not self._nodes.is_synced:
            nodes = await self._client.list(NODE, labels=self._system_nodes)
            return in_order(taint for node in nodes for taint in taints_of(node))
        if self._taints is None:
            self._taints = in_order(t for _, taints in self._nodes.items() for t in taints)
        return self._taints

    async def namespace(self, name: str) -> NamespaceSettings:
        """From the cache; live, if it does not have it."""
        return await self.availability.namespace(name)

    async def most_replicas(self, workload: GroupVersionKind, key: Key) -> int | None:
        """From the caches; live, if they are behind."""
        return await self.availability.most_replicas(workload, key)

    async def many_nodes(self) -> bool:
        """From the cache; live, if it is behind."""
        return await self.availability.many_nodes()

    async def config_map(self, key: Key) -> JsonObject:
        """Live: few pods ask for one, and it must not be outdated."""
        return await self._client.get(CONFIG_MAP, key)

    async def service(self, key: Key) -> JsonObject:
        """Live: few pods ask for one, and it must not be outdated."""
        return await self._client.get(SERVICE, key)

    async def objects(self, gvk: GroupVersionKind, namespace: str, labels: str) -> list[JsonObject]:
        """Live."""
        return await self._client.list(gvk, namespace or None, labels=labels or None)

    def _node_changed(self, change: Change[tuple[Taint, ...]]) -> None:
        if change.old != change.new:
            self._taints = None


def automounts(account: JsonObject) -> bool:
    """Whether a ServiceAccount lets pods mount its token by themselves: unless it says no."""
    return account.get("automountServiceAccountToken") is not False
