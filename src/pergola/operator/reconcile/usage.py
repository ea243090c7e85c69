"""Whether a Garden may be deleted: not while it serves Seeds or Shoots (spec 20 'Beyond' 21)."""

from contextlib import suppress
from typing import Final

from pergola.api import marks
from pergola.api.kinds import SEED, SHOOT
from pergola.api.objects import JsonObject, Key, annotations_of, deletion_timestamp_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.components.gardener_apiserver import GARDENER_APISERVER
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client
from pergola.kube.errors import KubeError, UnknownKind
from pergola.operator.reconcile.leftovers import listed
from pergola.operator.virtual_cluster import NotConnected, VirtualCluster
from pergola.runtime.logging import get_logger

log = get_logger("garden")

ABANDON: Final = "operator.gardener.cloud/abandon-seeds-and-shoots"
"""The annotation with which a user confirms the loss of Seeds and Shoots."""

_NAMED: Final = 5


class GardenInUse(OperatorError):
    """A Garden to delete still serves Seeds or Shoots."""


class UsageUnknown(OperatorError):
    """It is currently unknown whether a Garden to delete serves Seeds or Shoots."""


async def ensure_unused(client: Client, virtual: VirtualCluster, garden: JsonObject) -> None:
    """Check that a Garden has no Seeds and no Shoots, unless a user abandoned them.

    If they cannot be listed, the deletion waits while Gardener's API server is deployed. Without
    it, nothing can exist: it was never deployed, or the deletion has removed it.

    Args:
        client: Of the runtime cluster.

    Raises:
        GardenInUse: Some exist; the text names them.
        UsageUnknown: They cannot be listed.
        KubeError: The runtime cluster refused, or did not answer.
    """
    if marks.is_truthy(annotations_of(garden).get(ABANDON)):
        return
    try:
        access = await virtual.client()
        found = {kind.kind: await listed(access, kind) for kind in (SHOOT, SEED)}
    except (KubeError, NotConnected) as error:
        if await _has_gardener(client):
            raise UsageUnknown(
                f"the Seeds and Shoots of the garden cannot be listed: {error}. Its deletion goes "
                f"on when they can, or with the annotation {ABANDON}=true, which gives them up"
            ) from error
        log.info("seeds and shoots not checked before deletion", reason=str(error))
        return
    for kind, objects in found.items():
        if objects:
            names = ", ".join(str(Key.of(each)) for each in objects[:_NAMED])
            count = f"{len(objects)} {kind}{'s' if len(objects) > 1 else ''}"
            raise GardenInUse(
                f"the garden still has {count} ({names}): delete them first, or "
                f"set the annotation {ABANDON}=true to give them up"
            )


async def _has_gardener(client: Client) -> bool:
    """Return whether Gardener's API server is deployed, and not being deleted."""
    for key in GARDENER_APISERVER.leftovers.managed:
        with suppress(UnknownKind):
            found = await client.find(MANAGED_RESOURCE, key, metadata_only=True)
            if found is not None and deletion_timestamp_of(found) is None:
                return True
    return False
