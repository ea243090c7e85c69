"""The CloudProfiles that NamespacedCloudProfiles extend."""

from pergola.api.object_names import name_problem
from pergola.api.objects import JsonObject, Key, map_at
from pergola.extensions.garden import CLOUD_PROFILE, Garden


class Parents:
    """Finds CloudProfiles in a cache, or in the garden if the cache is late."""

    def __init__(self, garden: Garden) -> None:
        self._client = garden.client
        self._known = garden.watch(CLOUD_PROFILE)

    @staticmethod
    def name_of(profile: JsonObject) -> str:
        """Return the name of the CloudProfile that a NamespacedCloudProfile extends."""
        return str(map_at(profile, "spec", "parent").get("name") or "")

    async def find(self, name: str) -> JsonObject | None:
        """Return a CloudProfile, or None if it does not exist."""
        if name_problem(name) is not None:
            return None
        key = Key("", name)
        return self._known.get(key) or await self._client.find(CLOUD_PROFILE, key)
