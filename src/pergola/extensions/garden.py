"""The reads of webhooks in the garden, from caches.

A webhook answers at once: everything it reads is watched from the start.
"""

from collections.abc import Callable
from functools import cache
from typing import Final

from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    map_at,
    metadata_of,
    namespace_of,
)
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache
from pergola.runtime.controlling.unit import Unit

CLOUD_PROFILE: Final = GroupVersionKind(GARDENER_CORE, "v1beta1", "CloudProfile")
NAMESPACED_CLOUD_PROFILE: Final = GroupVersionKind(
    GARDENER_CORE, "v1beta1", "NamespacedCloudProfile"
)

CloudProfiles = Callable[[JsonObject], JsonObject | None]
"""Returns the CloudProfile or NamespacedCloudProfile of a Shoot, or None."""


class Garden:
    """The garden cluster, for declaring webhooks.

    Attributes:
        client: for reads that are not cached.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._caches: list[Cache[JsonObject]] = []
        self._watched = cache(self._watch)

    def watch(self, gvk: GroupVersionKind) -> Cache[JsonObject]:
        """Return a cache of a kind, filled before the first webhook is called.

        It stays empty if the garden does not serve the kind.
        """
        return self._watched(gvk)

    def cloud_profiles(self) -> CloudProfiles:
        """Watch cloud profiles, and return the function that finds the profile of a Shoot."""
        everywhere, of_projects = self.watch(CLOUD_PROFILE), self.watch(NAMESPACED_CLOUD_PROFILE)

        def find(shoot: JsonObject) -> JsonObject | None:
            kind, key = cloud_profile_of(shoot)
            found = of_projects if kind == NAMESPACED_CLOUD_PROFILE.kind else everywhere
            return found.get(key)

        return find

    def unit(self) -> Unit:
        """Return the unit that runs all caches requested so far."""
        return Unit(caches=self._caches)

    def _watch(self, gvk: GroupVersionKind) -> Cache[JsonObject]:
        found = Cache(self.client, gvk, _without_history)
        self._caches.append(found)
        return found


def cloud_profile_of(shoot: JsonObject) -> tuple[str, Key]:
    """Return the kind and key of a Shoot's cloud profile; the name is empty without one."""
    spec = map_at(shoot, "spec")
    reference = map_at(spec, "cloudProfile")
    if reference.get("kind") == NAMESPACED_CLOUD_PROFILE.kind:
        key = Key(namespace_of(shoot), str(reference.get("name") or ""))
        return NAMESPACED_CLOUD_PROFILE.kind, key
    name = reference.get("name") or spec.get("cloudProfileName") or ""
    return CLOUD_PROFILE.kind, Key("", str(name))


def _without_history(obj: JsonObject) -> JsonObject:
    metadata = {name: v for name, v in metadata_of(obj).items() if name != "managedFields"}
    return {**obj, "metadata": metadata}
