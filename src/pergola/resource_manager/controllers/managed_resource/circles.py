"""Objects that a ManagedResource needs itself: its namespace, its Secrets, and itself.

They must not be deleted with it: its deletion would wait for them, and they for its deletion.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import GroupKind, GroupVersionKind, JsonObject, Key, uid_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle.managed_resource import secret_names
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden, UnknownKind
from pergola.resource_manager.controllers.managed_resource.prune import describe
from pergola.resource_manager.controllers.managed_resource.references import (
    object_key_of,
    reference,
)

_NAMESPACE: Final = GroupKind("", "Namespace")


async def needed_objects(
    resource: JsonObject,
    objects: Iterable[tuple[GroupVersionKind, Key]],
    *,
    source: Client,
    target: Client,
) -> Mapping[str, str]:
    """Return the objects that a ManagedResource needs itself: remarks by object key.

    In another cluster than its own, it needs none.

    Raises:
        KubeError: it is unknown whether the target is the cluster of the ManagedResource.
    """
    found = dict(_candidates(resource, objects))
    return found if found and await _is_in(resource, source, target) else {}


def _candidates(
    resource: JsonObject, objects: Iterable[tuple[GroupVersionKind, Key]]
) -> Iterator[tuple[str, str]]:
    own, secrets = Key.of(resource), secret_names(resource)
    for gvk, key in objects:
        kind = gvk.group_kind
        if kind == _NAMESPACE and key.name == own.namespace:
            text = "contains this ManagedResource, so it stays when the ManagedResource is deleted"
        elif kind == SECRET.group_kind and key.namespace == own.namespace and key.name in secrets:
            text = (
                "contains the manifests of this ManagedResource, so it is neither changed nor "
                "deleted"
            )
        elif kind == MANAGED_RESOURCE.group_kind and key == own:
            text = "is this ManagedResource itself, which is deleted without waiting for itself"
        else:
            continue
        yield object_key_of(gvk, key), f"{describe(reference(gvk, key, {}, {}))} {text}"


async def _is_in(resource: JsonObject, source: Client, target: Client) -> bool:
    """Return whether the target is the cluster of the ManagedResource, or may have been."""
    key = Key.of(resource)
    try:
        found = await target.find(MANAGED_RESOURCE, key, metadata_only=True)
    except (Forbidden, UnknownKind):
        return False
    if found is not None:
        return uid_of(found) == uid_of(resource)
    # A ManagedResource that is gone everywhere was perhaps in this cluster.
    return await source.find(MANAGED_RESOURCE, key, metadata_only=True) is None
