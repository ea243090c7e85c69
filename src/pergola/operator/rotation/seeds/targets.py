"""The objects that gardenlets watch for operations: Seeds, and self-hosted Gardenlets."""

from dataclasses import dataclass
from typing import Final

from pergola.api.kinds import SEED
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.garden.landscape import NAMESPACE
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind

GARDENLET: Final = GroupVersionKind("seedmanagement.gardener.cloud", "v1alpha1", "Gardenlet")


@dataclass(frozen=True, slots=True)
class Targets:
    """The objects on which gardenlets look for operations.

    Attributes:
        prefix: The name prefix of those that count.
    """

    gvk: GroupVersionKind
    namespace: str | None = None
    prefix: str = ""

    async def list(self, client: Client) -> list[JsonObject]:
        """Return the metadata of all; none if the kind is not served.

        Raises:
            KubeError: They cannot be listed.
        """
        try:
            found = await client.list(self.gvk, self.namespace, metadata_only=True)
        except UnknownKind:
            return []
        return [obj for obj in found if self.count(Key.of(obj))]

    def count(self, key: Key) -> bool:
        """Return whether an object of the kind counts."""
        return key.name.startswith(self.prefix)


SEEDS: Final = Targets(SEED)
SELF_HOSTED: Final = Targets(GARDENLET, NAMESPACE, "self-hosted-shoot-")
"""The Gardenlets of Shoots that host their own control plane."""
