"""A check of owners: an object that the garbage collector deleted with them is not recreated."""

from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    deletion_timestamp_of,
    namespace_of,
    owner_references_of,
    uid_of,
)
from pergola.kube.client import Client
from pergola.kube.errors import KubeError
from pergola.resource_manager.controllers.managed_resource.recreate import ApplyRefused


async def check_owners(client: Client, manifest: JsonObject) -> None:
    """Check that an object in a manifest would not be deleted with its owners at once.

    An owner that cannot be read counts as one that stays.

    Raises:
        ApplyRefused: all of its owners are gone, or being deleted.
    """
    references = owner_references_of(manifest)
    for reference in references:
        if await _stays(client, reference, namespace_of(manifest)):
            return
    if references:
        owner = f"{references[0].get('kind')} {references[0].get('name')}"
        raise ApplyRefused(
            f"not created again: its owner {owner} is gone or being deleted, so the garbage "
            "collector would delete it"
        )


async def _stays(client: Client, reference: JsonObject, namespace: str) -> bool:
    gvk = GroupVersionKind.of(reference)
    try:
        resource = await client.resource(gvk)
        key = Key(namespace if resource.namespaced else "", str(reference.get("name") or ""))
        owner = await client.find(gvk, key, metadata_only=True)
    except KubeError:
        return True
    if owner is None or uid_of(owner) != reference.get("uid"):
        return False
    return deletion_timestamp_of(owner) is None
