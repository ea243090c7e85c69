"""Whether a Garden may be deleted: not while it serves Seeds or Shoots (spec 20 'Beyond' 21)."""

from typing import Final

from pergola.api import marks
from pergola.api.kinds import SHOOT
from pergola.api.objects import JsonObject, Key, annotations_of
from pergola.kube.errors import KubeError
from pergola.operator.garden.errors import OperatorError
from pergola.operator.garden.leftovers import listed
from pergola.operator.garden.virtual_content import SEED
from pergola.operator.virtual_cluster import NotConnected, VirtualCluster
from pergola.runtime.logging import get_logger

log = get_logger("garden")

ABANDON: Final = "operator.gardener.cloud/abandon-seeds-and-shoots"
"""The annotation by which a user confirms that Seeds and Shoots are lost."""

_NAMED: Final = 5


class GardenInUse(OperatorError):
    """A Garden that is to be deleted still serves Seeds or Shoots."""


async def ensure_unused(virtual: VirtualCluster, garden: JsonObject) -> None:
    """Check that a Garden has no Seeds and no Shoots, unless a user gave them up.

    A virtual cluster that cannot be reached does not hold the deletion: it may be gone already.

    Raises:
        GardenInUse: It has some; the text names them.
    """
    if marks.is_truthy(annotations_of(garden).get(ABANDON)):
        return
    try:
        client = await virtual.client()
        found = {kind.kind: await listed(client, kind) for kind in (SHOOT, SEED)}
    except (KubeError, NotConnected) as error:
        log.warning("seeds and shoots not checked before deletion", error=str(error))
        return
    for kind, objects in found.items():
        if objects:
            names = ", ".join(str(Key.of(each)) for each in objects[:_NAMED])
            raise GardenInUse(
                f"the garden still has {len(objects)} {kind}s ({names}): delete them first, or "
                f"set the annotation {ABANDON}=true to give them up"
            )
