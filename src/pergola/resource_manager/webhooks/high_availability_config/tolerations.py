"""Tolerations that limit how long pods stay on unreachable nodes (spec 12 §3.6)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.resource_manager.webhooks.decoding import maps_in

PATH: Final = ("spec", "template", "spec", "tolerations")
NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_EFFECT: Final = "NoExecute"


def missing_tolerations(
    obj: JsonObject, not_ready: int | None, unreachable: int | None
) -> list[JsonObject]:
    """Return the tolerations to add, for keys that the pods do not tolerate themselves."""
    present = maps_in(obj, *PATH)
    desired = ((NOT_READY, not_ready), (UNREACHABLE, unreachable))
    return [
        {"key": key, "operator": "Exists", "effect": _EFFECT, "tolerationSeconds": seconds}
        for key, seconds in desired
        if seconds is not None and not any(_speaks_of(key, t) for t in present)
    ]


def _speaks_of(key: str, toleration: JsonObject) -> bool:
    return toleration.get("key") == key and toleration.get("effect") in (None, "", _EFFECT)
