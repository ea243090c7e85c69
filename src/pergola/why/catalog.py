"""All explainers that Pergola ships; the first one with a sentence gives the verdict.

Most decide with the functions of a whole controller. So the module of one is imported when an
object needs it: commands that explain one object start in a fraction of the time.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from pergola.api.cluster_api import INFRASTRUCTURE_GROUP, MANAGED_BY
from pergola.api.kinds import (
    CRD,
    CSR,
    DEPLOYMENT,
    ENDPOINT_SLICE,
    HPA,
    MACHINE,
    MACHINE_DEPLOYMENT,
    NETWORK_POLICY,
    POD,
    PVC,
    SECRET,
    STATEFUL_SET,
)
from pergola.api.marks import ORIGIN
from pergola.api.objects import GroupKind, GroupVersionKind, JsonObject, annotations_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api.kinds import EXTENSION_KINDS, GROUP, WORKER
from pergola.health import has_rule
from pergola.why.answer import Asked, Part
from pergola.why.explainer import Explainer
from pergola.why.reading import Reader

_GARDENER: Final = ".gardener.cloud"
_OWN_CONDITIONS: Final = (GARDEN.group_kind, MANAGED_RESOURCE.group_kind)
"""Kinds with an explainer that shows their conditions."""
_REVIEWED_GROUPS: Final = (GROUP, "autoscaling.k8s.io", "druid.gardener.cloud")


@dataclass(frozen=True, slots=True)
class Imported:
    """An explanation that is imported when it is asked for.

    Attributes:
        target: Its function below `pergola.why`, as `module:function`.
    """

    target: str

    async def __call__(self, asked: Asked, reader: Reader) -> Part:
        """Explain, as `Explainer.explain` does."""
        return await self.function()(asked, reader)

    def function(self) -> Callable[[Asked, Reader], Awaitable[Part]]:
        """Return the function."""
        module, _, name = self.target.partition(":")
        found: Callable[[Asked, Reader], Awaitable[Part]]
        found = getattr(import_module(f"pergola.why.{module}"), name)
        return found


def _explainer(name: str, applies: Callable[[JsonObject], bool], target: str) -> Explainer:
    return Explainer(name, applies, Imported(target))


def _of(*kinds: GroupVersionKind) -> Callable[[JsonObject], bool]:
    """Return whether an object is of one of these kinds, in any version."""
    known = {each.group_kind for each in kinds}
    return lambda obj: _kind(obj) in known


_has_reviewed_kind: Final = _of(POD, SECRET, DEPLOYMENT, STATEFUL_SET, HPA, ENDPOINT_SLICE, CRD)


def _kind(obj: JsonObject) -> GroupKind:
    return GroupVersionKind.of(obj).group_kind


def _is_extension(obj: JsonObject) -> bool:
    kind = _kind(obj)
    return kind.group == GROUP and kind.kind in EXTENSION_KINDS


def _has_conditions(obj: JsonObject) -> bool:
    kind = _kind(obj)
    return kind.group.endswith(_GARDENER) and kind not in _OWN_CONDITIONS


def _is_infrastructure(obj: JsonObject) -> bool:
    return _kind(obj).group == INFRASTRUCTURE_GROUP or MANAGED_BY in annotations_of(obj)


def _has_health(obj: JsonObject) -> bool:
    gvk = GroupVersionKind.of(obj)
    if gvk.group == GROUP or gvk.group_kind == MANAGED_RESOURCE.group_kind:
        return False
    return has_rule(gvk) or gvk in (POD, PVC)


def _is_managed(obj: JsonObject) -> bool:
    return ORIGIN in annotations_of(obj)


def _may_be_reviewed(obj: JsonObject) -> bool:
    """Return whether webhooks of the resource manager may review objects of its kind."""
    return _has_reviewed_kind(obj) or _kind(obj).group in _REVIEWED_GROUPS


def _always(_: JsonObject) -> bool:
    return True


EXPLAINERS: Final[tuple[Explainer, ...]] = (
    _explainer("Gardens", _of(GARDEN), "gardens:explain"),
    _explainer("ManagedResources", _of(MANAGED_RESOURCE), "managed_resources:explain"),
    _explainer("Workers", _of(WORKER), "workers.worker:explain"),
    _explainer("MachineDeployments", _of(MACHINE_DEPLOYMENT), "workers.deployment:explain"),
    _explainer("Machines", _of(MACHINE), "workers.machine:explain"),
    _explainer("extension resources", _is_extension, "extensions:explain"),
    _explainer("conditions", _has_conditions, "conditions:explain"),
    _explainer("InfraClusters", _is_infrastructure, "infra_clusters:explain"),
    _explainer("certificate requests", _of(CSR), "certificate_requests:explain"),
    _explainer("network policies", _of(NETWORK_POLICY), "network_policies:explain"),
    _explainer("token requests", _of(SECRET), "secrets:explain_token"),
    _explainer("Secrets", _of(SECRET), "secrets:explain"),
    _explainer("health", _has_health, "health:explain"),
    _explainer("managed objects", _is_managed, "managed_objects:explain"),
    _explainer("webhooks", _may_be_reviewed, "webhooks:explain"),
    _explainer("ownership", _always, "ownership:explain"),
)
