"""The pods of managed workloads, reduced to what counting them needs."""

from dataclasses import dataclass

from pergola.api.kinds import POD
from pergola.api.objects import (
    JsonObject,
    Key,
    deletion_timestamp_of,
    labels_of,
    map_at,
    maps_at,
    namespace_of,
    owner_references_of,
)
from pergola.kube.selectors import format_selector
from pergola.resource_manager.target.watches import Watches, first_lists
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.controlling.watches import Events


@dataclass(frozen=True, slots=True)
class PodSeen:
    """The facts about a pod for counting a Deployment's pods."""

    pod: JsonObject


class Pods:
    """Watches pods of managed workloads once the first of them is counted.

    Attributes:
        changes: the changes of watched pods.
    """

    def __init__(self, watches: Watches) -> None:
        self.changes: Events[Change[PodSeen]] = Events()
        self._watches = watches
        self._caches: list[Cache[PodSeen]] = []

    async def of(self, workload: JsonObject) -> list[JsonObject]:
        """Return at least the pods of a workload.

        Pods of a template with our label are watched, as far as the watches reach; others are read
        from the server.
        """
        namespace = namespace_of(workload)
        template = map_at(workload, "spec", "template")
        if not self._watches.is_ours(labels_of(template)) or not self._watches.reach(namespace):
            selector = format_selector(map_at(workload, "spec", "selector"))
            return await self._watches.client.list(POD, namespace, labels=selector)
        if not self._caches:
            self._caches = self._watches.make(POD, _keep, self.changes.notify)
            await first_lists(self._caches)
        return [
            seen.pod
            for cache in self._caches
            for key, seen in cache.items()
            if key.namespace == namespace
        ]


def _keep(obj: JsonObject) -> PodSeen:
    status = map_at(obj, "status")
    return PodSeen(
        {
            "metadata": {
                "name": Key.of(obj).name,
                "namespace": namespace_of(obj),
                "labels": labels_of(obj),
                "ownerReferences": owner_references_of(obj),
                "deletionTimestamp": deletion_timestamp_of(obj),
            },
            "status": {
                "phase": status.get("phase"),
                "reason": status.get("reason"),
                "conditions": maps_at(obj, "status", "conditions"),
            },
        }
    )
