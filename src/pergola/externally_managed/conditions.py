"""Conditions of an InfraCluster, in the shape of its contract (spec 50 §4.2)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from pergola.api.cluster_api import ContractVersion
from pergola.api.conditions import get_condition, merge_conditions, timestamp
from pergola.api.objects import JsonObject, generation_of, maps_at

READY: Final = "Ready"
PAUSED: Final = "Paused"


def conditions_of(obj: Mapping[str, Any]) -> list[JsonObject]:
    """The conditions of an object."""
    return maps_at(obj, "status", "conditions")


def with_condition(
    conditions: list[JsonObject],
    obj: Mapping[str, Any],
    version: ContractVersion,
    kind: str,
    *,
    status: bool,
    reason: str,
    message: str,
    now: datetime,
) -> list[JsonObject]:
    """A new list in which a condition says this; the same times if it said so already."""
    known = get_condition(conditions, kind) or {}
    value = "True" if status else "False"
    moved = known.get("status") != value or "lastTransitionTime" not in known
    condition: JsonObject = {
        "type": kind,
        "status": value,
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamp(now) if moved else known["lastTransitionTime"],
    }
    if version == "v1beta2":
        condition["observedGeneration"] = generation_of(obj)
    elif not status:
        condition["severity"] = "Error" if kind == READY else "Info"
    return merge_conditions(conditions, condition)
