"""The resources that replicas of an extension share, kind by kind."""

from collections.abc import Iterable

from pergola.api.objects import GroupVersionKind
from pergola.kube.client import Client
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.sharding.scope import ShardScope
from pergola.runtime.process.sharding.shard import Shard


class Sharing:
    """The work of one replica as a shard.

    Resources without a namespace stay with the leader: the sharder does not move them.

    Attributes:
        client: guarded by the Lease of the shard.
        units: the controllers of shared kinds, enabled or not.
    """

    def __init__(self, client: Client, shard: Shard, metrics: Metrics) -> None:
        self.client = client
        self.units: list[Unit] = []
        self._shard = shard
        self._metrics = metrics
        self._scopes: dict[GroupVersionKind, ShardScope] = {}

    def scope(self, gvk: GroupVersionKind) -> ShardScope:
        """Return the resources of a kind that are assigned to this replica."""
        if gvk not in self._scopes:
            self._scopes[gvk] = ShardScope(self.client, gvk, self._shard, self._metrics)
        return self._scopes[gvk]

    def chosen(self, on: Iterable[Unit]) -> list[Unit]:
        """Return the units of the shard: enabled controllers, and those that give up resources."""
        shared = [unit for unit in on if unit in self.units]
        return [*(scope.unit for scope in self._scopes.values()), *shared]
