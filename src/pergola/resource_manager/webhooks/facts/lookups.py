"""The reads of handlers: from caches if pods wait for them, live otherwise.

A lagging cache never causes a refusal: objects missing from it are read from the API server before
they count as missing (spec 12, Beyond 10).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from pergola.api.kinds import CONFIG_MAP, NODE, SERVICE, SERVICE_ACCOUNT
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.selectors import format_selector
from pergola.resource_manager.webhooks.facts.environment import (
    ClusterEnvironment,
)
from pergola.resource_manager.webhooks.facts.high_availability import NamespaceSettings
from pergola.resource_manager.webhooks.facts.taints import Taint, in_order, taints_of
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.caches import Caches
from pergola.runtime.controlling.unit import Watching


class Lookups(Protocol):
    """The reads of all handlers; each method may raise KubeError."""

    def known_mount(self, account: Key) -> bool | None:
        """Return the result of `mounts_token` without waiting; None if that is impossible."""
        ...

    def known_taints(self) -> Sequence[Taint] | None:
        """Return the result of `system_taints` without waiting; None if that is impossible."""
        ...

    async def mounts_token(self, account: Key) -> bool:
        """Return whether a ServiceAccount mounts its token into pods."""
        ...

    async def system_taints(self) -> Sequence[Taint]:
        """Return the taints of the nodes for system components, in a stable order.

        The list is the same object until a taint changes.
        """
        ...

    async def namespace(self, name: str) -> NamespaceSettings:
        """Return a namespace's settings for high availability."""
        ...

    async def most_replicas(self, workload: GroupVersionKind, key: Key) -> int | None:
        """Return the maximum of a workload's autoscaler, or None without one."""
        ...

    async def many_nodes(self) -> bool:
        """Return whether there is more than one node."""
        ...

    async def config_map(self, key: Key) -> JsonObject:
        """Read a ConfigMap."""
        ...

    async def service(self, key: Key) -> JsonObject:
        """Read a Service."""
        ...

    async def objects(self, gvk: GroupVersionKind, namespace: str, labels: str) -> list[JsonObject]:
        """List the objects of a kind, in all namespaces if `namespace` is empty."""
        ...


class ClusterLookups:
    """The lookups in a cluster; unless `caches` run, everything is read live.

    Args:
        client: for the cluster whose API server calls the webhooks.
        namespaces: where to watch ServiceAccounts and autoscalers; all if empty.
        system_nodes: the labels of the nodes for system components; all nodes if empty.
        accounts: watch ServiceAccounts.
        nodes: watch Nodes.
        availability: watch namespaces, Nodes and autoscalers for high availability.
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
        self.availability = ClusterEnvironment(client, watched=namespaces)
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

    def known_mount(self, account: Key) -> bool | None:
        """Read from the cache."""
        return self._accounts.get(account) if self._accounts.is_synced else None

    def known_taints(self) -> Sequence[Taint] | None:
        """Read from the cache, evaluated once for each change of a taint."""
        if not self._nodes.is_synced:
            return None
        if self._taints is None:
            self._taints = in_order(t for _, taints in self._nodes.items() for t in taints)
        return self._taints

    async def mounts_token(self, account: Key) -> bool:
        """Read from the cache, or live if it is missing there."""
        known = self.known_mount(account)
        if known is not None:
            return known
        return automounts(await self._client.get(SERVICE_ACCOUNT, account))

    async def system_taints(self) -> Sequence[Taint]:
        """Read from the cache, or live until it is synced."""
        known = self.known_taints()
        if known is not None:
            return known
        nodes = await self._client.list(NODE, labels=self._system_nodes)
        return in_order(taint for node in nodes for taint in taints_of(node))

    async def namespace(self, name: str) -> NamespaceSettings:
        """Read from the cache, or live if it is missing there."""
        return await self.availability.namespace(name)

    async def most_replicas(self, workload: GroupVersionKind, key: Key) -> int | None:
        """Read from the caches, or live until they are synced."""
        return await self.availability.most_replicas(workload, key)

    async def many_nodes(self) -> bool:
        """Read from the cache, or live until it is synced."""
        return await self.availability.many_nodes()

    async def config_map(self, key: Key) -> JsonObject:
        """Read live: few pods need it, and it must be current."""
        return await self._client.get(CONFIG_MAP, key)

    async def service(self, key: Key) -> JsonObject:
        """Read live: few pods need it, and it must be current."""
        return await self._client.get(SERVICE, key)

    async def objects(self, gvk: GroupVersionKind, namespace: str, labels: str) -> list[JsonObject]:
        """List live."""
        return await self._client.list(gvk, namespace or None, labels=labels or None)

    def _node_changed(self, change: Change[tuple[Taint, ...]]) -> None:
        if change.old != change.new:
            self._taints = None


def automounts(account: JsonObject) -> bool:
    """Return whether a ServiceAccount mounts its token into pods, which is the default."""
    return account.get("automountServiceAccountToken") is not False
