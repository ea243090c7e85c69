"""Extensions that Seeds require: condition `RequiredVirtual` (spec 21 §13.5)."""

from pergola.api.conditions import FALSE, TRUE
from pergola.api.objects import Key
from pergola.api.operator_v1alpha1.extension import REQUIRED_VIRTUAL
from pergola.kube.client import Client
from pergola.operator.conditions import Conditions
from pergola.operator.extension.installations import Installations
from pergola.runtime.controlling.controller import DONE, Outcome


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
