"""Extensions that Seeds require: condition `RequiredVirtual` (spec 21 §13.5)."""

from typing import Final

from pergola.api.conditions import FALSE, TRUE
from pergola.api.objects import Key
from pergola.api.operator_v1alpha1 import EXTENSION
from pergola.api.operator_v1alpha1.extension import REQUIRED_VIRTUAL
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind
from pergola.operator.conditions import Conditions, condition_of
from pergola.operator.extension.installations import Installations
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.controller import DONE, Outcome

GARDEN_DELETED: Final = "GardenDeleted"


class RequiredVirtual:
    """Decides whether a Seed requires an Extension.

    Args:
        client: Of the runtime cluster.
    """

    def __init__(
        self, client: Client, installations: Installations, conditions: Conditions
    ) -> None:
        self._client = client
        self._installations = installations
        self._conditions = conditions

    async def reconcile(self, key: Key) -> Outcome:
        """Write the condition of an Extension, if the virtual cluster can be reached.

        Raises:
            KubeError: The API server refused, or did not answer.
        """
        if not self._installations.are_known:
            return DONE
        if any(each.is_required for each in self._installations.of(key.name)):
            text = "Extension has required ControllerInstallations for seed clusters"
            content = (TRUE, "RequiredControllerInstallation", text)
        else:
            text = "Extension does not have required ControllerInstallations for seed clusters"
            content = (FALSE, "NoRequiredControllerInstallation", text)
        await self._conditions.patch(key, REQUIRED_VIRTUAL, *content)
        return DONE


async def patch_garden_deleted(client: Client, clock: Clock) -> None:
    """Report on all Extensions that no Seed requires them any longer: the virtual cluster is gone.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    conditions = Conditions(client, EXTENSION, clock)
    try:
        extensions = await client.list(EXTENSION)
    except UnknownKind:
        return
    for extension in extensions:
        if condition_of(extension, REQUIRED_VIRTUAL):
            text = "Virtual cluster has been destroyed"
            await conditions.patch(Key.of(extension), REQUIRED_VIRTUAL, FALSE, GARDEN_DELETED, text)
