"""The HorizontalPodAutoscalers of the target, reduced to their scale targets."""

from collections.abc import Collection
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, namespace_of
from pergola.resource_manager.target.watches import Watched, Watches

HPA: Final = GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler")


class Autoscalers:
    """Watches HorizontalPodAutoscalers, of all owners, once they are first needed."""

    def __init__(self, watches: Watches) -> None:
        self._watches = watches
        self._watched: Watched[JsonObject] | None = None

    async def of(self, namespaces: Collection[str]) -> list[JsonObject]:
        """Return the autoscalers of some namespaces, perhaps more, with their scale targets.

        They are watched, and read from the server if the watches do not cover them or their first
        lists are missing.
        """
        if self._watched is None:
            self._watched = self._watches.make(HPA, _keep, only_ours=False)
        are_known = await self._watched.listed()
        found = [hpa for cache in self._watched.caches for _, hpa in cache.items()]
        for namespace in namespaces:
            if not are_known or not self._watches.reach(namespace):
                found += await self._watches.client.list(HPA, namespace)
        return found


def _keep(obj: JsonObject) -> JsonObject:
    spec = map_at(obj, "spec")
    return {
        "apiVersion": obj.get("apiVersion"),
        "kind": obj.get("kind"),
        "metadata": {"name": Key.of(obj).name, "namespace": namespace_of(obj)},
        "spec": {"scaleTargetRef": spec.get("scaleTargetRef")} if spec else {},
    }
