"""Preparing the deletion of CustomResourceDefinitions, which kube-apiserver may delay for minutes.

The API server deletes the instances of a definition first. If no client has read any, its storage
of them is not set up yet, and the first attempt fails. The second attempt, a few milliseconds
later, may conflict with the status written by the first one. It then waits for a change that it has
already processed, until the resync of all definitions five minutes later.
"""

from contextlib import suppress
from typing import Final

from pergola.api.objects import GroupKind, GroupVersionKind, JsonObject, map_at, maps_at
from pergola.kube.client import Client
from pergola.kube.errors import KubeError

DEFINITION: Final = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
# A list with a selector is answered once the storage is set up; this one selects nothing.
_NONE: Final = "resources.gardener.cloud/selects=nothing"


async def set_up_storage(client: Client, definition: JsonObject) -> None:
    """Make the API server set up its storage for a definition's instances.

    If the API server refuses, it still deletes the definition, only perhaps later.
    """
    spec = map_at(definition, "spec")
    served = [each for each in maps_at(spec, "versions") if each.get("served")]
    # Each version has its own storage; deletion reads that of the stored version.
    served.sort(key=lambda version: not version.get("storage"))
    kind = str(map_at(spec, "names").get("kind") or "")
    with suppress(KubeError):
        for version in served[:1]:
            gvk = GroupVersionKind(str(spec.get("group") or ""), str(version["name"]), kind)
            await client.list(gvk, labels=_NONE, metadata_only=True)
