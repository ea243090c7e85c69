"""The HorizontalPodAutoscalers of the target, reduced to their scale targets."""

from collections.abc import Collection
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, namespace_of
from pergola.resource_manager.target.watches import Watched, Watches
from pergola.runtime.caching.cache import Change
from pergola.runtime.controlling.watches import Events

HPA: Final = GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler")


class Autoscalers:
    """Watches HorizontalPodAutoscalers, of all owners, once they are first needed.

    Attributes:
        changes: autoscalers that appeared, disappeared or have another scale target.
    """

    def __init__(self, watches: Watches) -> None:
        self.changes: Events[Change[JsonObject]] = Events()
        self._watches = watches
        self._watched: Watched[JsonObject] | None = None
        self._known: dict[str, dict[str, JsonObject]] = {}

    async def of(self, namespaces: Collection[str]) -> list[JsonObject]:
        """Return the autoscalers of some namespaces, with their scale targets.

        They are watched, and read from the server if the watches do not cover them or their first
        lists are missing.
        """
        if self._watched is None:
            self._watched = self._watches.make(HPA, _keep, self._changed, only_ours=False)
        are_known = await self._watched.listed()
        found: list[JsonObject] = []
        for namespace in namespaces:
            if are_known and self._watches.reach(namespace):
                found += self._known.get(namespace, {}).values()
            else:
                found += await self._watches.client.list(HPA, namespace)
        return found

    def observe(self, autoscaler: JsonObject) -> None:
        """Store an autoscaler that a write returned, before the watch delivers it."""
        for cache in self._watched.caches if self._watched else ():
            if cache.namespace in (None, namespace_of(autoscaler)):
                cache.observe(autoscaler)

    def deleted(self, key: Key) -> None:
        """Drop an autoscaler that was deleted, perhaps before the watch delivers that."""
        known = self._known.get(key.namespace, {})
        known.pop(key.name, None)
        if not known:
            self._known.pop(key.namespace, None)

    def _changed(self, change: Change[JsonObject]) -> None:
        key, old, new = change.key, change.old, change.new
        if new is None:
            self.deleted(key)
        else:
            self._known.setdefault(key.namespace, {})[key.name] = new
        if old != new and not change.initial:
            self.changes.notify(change)


def _keep(obj: JsonObject) -> JsonObject:
    spec = map_at(obj, "spec")
    return {
        "metadata": {"name": Key.of(obj).name, "namespace": namespace_of(obj)},
        "spec": {"scaleTargetRef": spec.get("scaleTargetRef")} if spec else {},
    }
