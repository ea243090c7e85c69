"""The ManagedResource in an object's origin annotation (spec 10 §3.3)."""

from typing import NamedTuple

from pergola.api.objects import Key


class Origin(NamedTuple):
    """A ManagedResource, and the id of its cluster (empty for none)."""

    cluster_id: str
    namespace: str
    name: str

    @property
    def key(self) -> Key:
        """The namespace and name of the ManagedResource."""
        return Key(self.namespace, self.name)

    def beside(self, resource: Key) -> "Origin":
        """Return the origin of another ManagedResource in the same cluster."""
        return self._replace(namespace=resource.namespace, name=resource.name)

    def __str__(self) -> str:
        prefix = f"{self.cluster_id}:" if self.cluster_id else ""
        return f"{prefix}{self.namespace}/{self.name}"


def parse_origin(text: str) -> Origin | None:
    """Parse `garden-1:ns/name` or `ns/name`; return None for anything else."""
    if text.count(":") > 1 or text.count("/") != 1:
        return None
    cluster_id, colon, key = text.rpartition(":")
    namespace, _, name = key.partition("/")
    if not namespace or not name or (colon and not cluster_id):
        return None
    return Origin(cluster_id, namespace, name)
