"""The pods of managed workloads, reduced to the facts for counting them."""

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
from pergola.resource_manager.target.watches import Watched, Watches
from pergola.runtime.caching.cache import Change
from pergola.runtime.controlling.watches import Events


@dataclass(frozen=True, slots=True)
class PodSeen:
    """The facts about a pod for counting a Deployment's pods."""

    pod: JsonObject


class Pods:
    """Watches the pods of managed workloads once the first workload is counted.

    Attributes:
        changes: the changes of watched pods.
    """

    def __init__(self, watches: Watches) -> None:
        self.changes: Events[Change[PodSeen]] = Events()
        self._watches = watches
        self._watched: Watched[PodSeen] | None = None

    async def of(self, workload: JsonObject) -> list[JsonObject]:
        """Return the pods of a workload, perhaps with others.

        Pods of a template with our label are watched as far as the watches reach; others are read
        from the server, as are all pods while the first lists are missing.
        """
        namespace = namespace_of(workload)
        if not self.are_watched(workload) or not await self._start().listed():
            return await self.listed(workload)
        return [
            seen.pod
            for cache in self._start().caches
            for key, seen in cache.items()
            if key.namespace == namespace
        ]

    def are_watched(self, workload: JsonObject) -> bool:
        """Return whether the pods that a workload creates now are watched; older may not be."""
        template = map_at(workload, "spec", "template")
        return self._watches.is_ours(labels_of(template)) and self._watches.reach(
            namespace_of(workload)
        )

    async def listed(self, workload: JsonObject) -> list[JsonObject]:
        """Return the pods of a workload from the server, by its selector."""
        selector = format_selector(map_at(workload, "spec", "selector"))
        return await self._watches.client.list(POD, namespace_of(workload), labels=selector)

    def _start(self) -> Watched[PodSeen]:
        if self._watched is None:
            self._watched = self._watches.make(POD, _keep, self.changes.notify)
        return self._watched


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
