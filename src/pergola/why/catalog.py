"""All explainers that Pergola ships; the first one with a sentence gives the verdict."""

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Final

from pergola.api.kinds import CSR, MACHINE, MACHINE_DEPLOYMENT, NETWORK_POLICY
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.extension_api.kinds import WORKER
from pergola.why.answer import Asked, Part
from pergola.why.conditions import CONDITIONS
from pergola.why.explainer import Explainer
from pergola.why.extensions import EXTENSIONS
from pergola.why.health import HEALTH
from pergola.why.infra_clusters import INFRA_CLUSTERS
from pergola.why.managed_objects import MANAGED_OBJECTS
from pergola.why.managed_resources import MANAGED_RESOURCES
from pergola.why.ownership import OWNERSHIP
from pergola.why.reading import Reader
from pergola.why.secrets import SECRETS
from pergola.why.webhooks import WEBHOOKS


def _of_kind(name: str, gvk: GroupVersionKind, module: str) -> Explainer:
    """Return the explainer of one kind, in any version.

    Args:
        module: The module below `pergola.why` with its `explain`, imported for an object of the
            kind only: it decides with the functions of a whole controller.
    """

    def applies(obj: JsonObject) -> bool:
        return GroupVersionKind.of(obj).group_kind == gvk.group_kind

    async def explain(asked: Asked, reader: Reader) -> Part:
        found: Callable[[Asked, Reader], Awaitable[Part]]
        found = import_module(f"pergola.why.{module}").explain
        return await found(asked, reader)

    return Explainer(name, applies, explain)


EXPLAINERS: Final[tuple[Explainer, ...]] = (
    _of_kind("Gardens", GARDEN, "gardens"),
    MANAGED_RESOURCES,
    _of_kind("Workers", WORKER, "workers.worker"),
    _of_kind("MachineDeployments", MACHINE_DEPLOYMENT, "workers.deployment"),
    _of_kind("Machines", MACHINE, "workers.machine"),
    EXTENSIONS,
    CONDITIONS,
    INFRA_CLUSTERS,
    _of_kind("certificate requests", CSR, "certificate_requests"),
    _of_kind("network policies", NETWORK_POLICY, "network_policies"),
    *SECRETS,
    HEALTH,
    MANAGED_OBJECTS,
    WEBHOOKS,
    OWNERSHIP,
)
