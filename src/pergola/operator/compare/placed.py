"""An object of a landscape: where it is kept, and its identity on both sides."""

import re
from collections.abc import Collection
from typing import Final, NamedTuple

from pergola.api.objects import GroupKind, GroupVersionKind, JsonObject, Key, name_of, namespace_of
from pergola.garden.components.component import Target

# The hashes in unique names: the checksum of the content, and that of the rotation.
_HASH: Final = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{5})?(?![0-9A-Za-z])")
# Manifests of these kinds may contain a namespace, which servers drop.
_IN_NO_NAMESPACE: Final = frozenset(
    {
        "APIService",
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "MutatingWebhookConfiguration",
        "Namespace",
        "PriorityClass",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    }
)


class Identity(NamedTuple):
    """The identity of an object in every landscape of the same Garden.

    Attributes:
        key: The key, with `*` for the hash in a unique name.
    """

    cluster: Target
    kind: GroupKind
    key: Key

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.key}"


class Placed(NamedTuple):
    """An object and its place.

    Attributes:
        cluster: The cluster that it is finally applied to.
        managed: The name of its ManagedResource; empty if the operator applies it directly.
        component: Our component that renders it; empty if unknown.
    """

    cluster: Target
    managed: str
    component: str
    obj: JsonObject

    @property
    def identity(self) -> Identity:
        """The identity that it has on both sides."""
        kind = GroupVersionKind.of(self.obj).group_kind
        namespace = "" if kind.kind in _IN_NO_NAMESPACE else namespace_of(self.obj)
        key = Key(namespace, without_hash(name_of(self.obj)))
        return Identity(self.cluster, kind, key)

    @property
    def group(self) -> str:
        """The heading under which a reader looks for it."""
        if self.managed:
            return f"ManagedResource {self.managed}"
        return f"component {self.component}" if self.component else "other objects"

    def is_of(self, names: Collection[str]) -> bool:
        """Return whether its ManagedResource or component is one of these."""
        return bool({self.managed, self.component} & {*names})


def without_hash(text: str) -> str:
    """Return a text with `*` in place of the hashes in unique names."""
    return _HASH.sub("-*", text)
