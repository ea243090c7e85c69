"""What is wrong with an object of Gardener or Pergola, according to its own conditions."""

from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.health.conditions import describe, failing, failing_since
from pergola.why.answer import Asked, Part, Statement, Topic
from pergola.why.explainer import Explainer
from pergola.why.reading import Reader

_GROUPS: Final = ".gardener.cloud"
_EXPLAINED: Final = (GARDEN.group_kind, MANAGED_RESOURCE.group_kind)
"""Kinds with an explainer that shows their conditions."""


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return the conditions that are not as they should be."""
    del reader
    found = tuple(
        Statement(topic=Topic.PROBLEM, text=describe(each), since=failing_since(each))
        for each in failing(asked.obj)
    )
    return Part(statements=found)


def _applies(obj: JsonObject) -> bool:
    gvk = GroupVersionKind.of(obj)
    return gvk.group.endswith(_GROUPS) and gvk.group_kind not in _EXPLAINED


CONDITIONS: Final = Explainer("conditions", _applies, explain)
