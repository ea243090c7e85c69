"""Conditions of an InfraCluster, in the format of its contract (spec 50 §4.2)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from pergola.api.cluster_api import ContractVersion
from pergola.api.conditions import get_condition, merge_conditions, timestamp
from pergola.api.objects import JsonObject, generation_of, map_at, maps_at

OLDER: Final = ("conditions",)
NEWER: Final = ("v1beta2", "conditions")
"""The fields of a status with conditions."""
READY: Final = "Ready"
PAUSED: Final = "Paused"
MESSAGE_CHARACTERS: Final[dict[ContractVersion, int]] = {"v1beta1": 10240, "v1beta2": 32768}
"""The maximum length of a message in providers' CRDs."""


def conditions_of(obj: Mapping[str, Any]) -> list[JsonObject]:
    """Return the conditions of an object that core reads.

    Providers of contract v1beta1 may write them in the format of v1beta2, too, to another field,
    which core prefers.
    """
    status = map_at(obj, "status")
    return maps_at(status, *(NEWER if has_newer(status) else OLDER))


def has_newer(status: JsonObject) -> bool:
    """Return whether a status of contract v1beta1 also has conditions in the format of v1beta2."""
    return isinstance(map_at(status, *NEWER[:-1]).get(NEWER[-1]), list)


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
    """Return a new list with this condition; unchanged content keeps its time.

    In v1beta1, the providers' CRDs reject an empty message, so the field is omitted.
    """
    known = get_condition(conditions, kind) or {}
    value = "True" if status else "False"
    moved = known.get("status") != value or "lastTransitionTime" not in known
    condition: JsonObject = {
        "type": kind,
        "status": value,
        "reason": reason,
        "message": _shortened(message, MESSAGE_CHARACTERS[version]),
        "lastTransitionTime": timestamp(now) if moved else known["lastTransitionTime"],
    }
    if version == "v1beta2":
        condition["observedGeneration"] = generation_of(obj)
    elif not status:
        condition["severity"] = "Error" if kind == READY else "Info"
    if version == "v1beta1" and not message:
        del condition["message"]
    return merge_conditions(conditions, condition)


def _shortened(message: str, limit: int) -> str:
    return message if len(message) <= limit else f"{message[: limit - 2]} …"
