"""Pinning pods to zones with a node affinity (spec 12 §3.4)."""

from collections.abc import Sequence
from typing import Final

from pergola.api.objects import JsonObject
from pergola.resource_manager.webhooks.decoding import maps_in

ZONE_KEY: Final = "topology.kubernetes.io/zone"
PATH: Final = (
    "spec",
    "template",
    "spec",
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
)


def pinned_terms(obj: JsonObject, zones: Sequence[str]) -> list[JsonObject]:
    """Return the terms, each with an additional requirement for one of the zones.

    Terms are alternatives, so each needs the requirement.
    """
    terms = maps_in(obj, *PATH)
    return [_pinned(term, zones) for term in terms or [{}]]


def _pinned(term: JsonObject, zones: Sequence[str]) -> JsonObject:
    expressions = maps_in(term, "matchExpressions")
    others = [expression for expression in expressions if expression.get("key") != ZONE_KEY]
    requirement = {"key": ZONE_KEY, "operator": "In", "values": list(zones)}
    return {**term, "matchExpressions": [*others, requirement]}
