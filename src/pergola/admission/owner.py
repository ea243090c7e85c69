"""The object whose deletion deletes webhook configurations, through the garbage collector."""

from dataclasses import dataclass
from typing import Self

from pergola.admission.certificates import ServingError
from pergola.api.kinds import CLUSTER_ROLE
from pergola.api.objects import GroupVersionKind, JsonObject, Key, uid_of
from pergola.kube.client import Client
from pergola.kube.errors import NotFound


@dataclass(frozen=True, slots=True)
class Owner:
    """An object without a namespace, in the cluster of the webhook configurations.

    Attributes:
        setting: the setting that names it, for errors.
    """

    gvk: GroupVersionKind
    name: str
    setting: str

    @classmethod
    def cluster_role(cls, name: str, setting: str) -> Self | None:
        """Return the ClusterRole that a setting names; None if it names none."""
        return cls(CLUSTER_ROLE, name, setting) if name else None

    async def reference(self, client: Client) -> JsonObject:
        """Return an owner reference to its current incarnation.

        Raises:
            ServingError: it does not exist.
            KubeError: the API server refused, or did not answer.
        """
        try:
            found = await client.get(self.gvk, Key("", self.name))
        except NotFound:
            raise ServingError(
                f"{self.gvk.kind} {self.name} does not exist, and cannot own the webhook "
                f"configurations: correct {self.setting}"
            ) from None
        return {
            "apiVersion": self.gvk.api_version,
            "kind": self.gvk.kind,
            "name": self.name,
            "uid": uid_of(found),
            "blockOwnerDeletion": False,
            "controller": False,
        }
