"""Operations that gardenlets perform on Seeds while the operator waits."""

from typing import Final

from pergola.api import marks
from pergola.api.objects import JsonObject, Key, annotations_of
from pergola.kube.patches import apply_merge_patch
from pergola.operator.plan.client import Rehearsal
from pergola.operator.rotation.seeds import tasks
from pergola.operator.rotation.seeds.targets import SEEDS, SELF_HOSTED

AWAITED: Final = frozenset(
    {tasks.ACCESS, tasks.TOKENS, tasks.KUBECONFIGS, tasks.SELF_HOSTED_KUBECONFIGS}
)
"""The tasks that wait until gardenlets have performed an operation."""

_PERFORMED: Final[JsonObject] = {"metadata": {"annotations": {marks.OPERATION: None}}}


async def perform_all(virtual: Rehearsal) -> None:
    """Assume that gardenlets have completed all operations, so that the next can be requested.

    Raises:
        KubeError: The Seeds cannot be read.
    """
    for targets in (SEEDS, SELF_HOSTED):
        for obj in await targets.list(virtual):
            if marks.OPERATION in annotations_of(obj):
                live = await virtual.get(targets.gvk, Key.of(obj))
                virtual.assume(apply_merge_patch(live, _PERFORMED))
