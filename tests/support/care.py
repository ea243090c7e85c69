"""Observations of a Garden, for tests of the care reconciler."""

from collections.abc import Mapping
from typing import Any

from pergola.api.objects import JsonObject, Key
from pergola.operator.care.check import DEPLOYMENTS, ETCDS, Observed, SeenResource
from pergola.operator.care.servers import Probe

GOOD = {"ResourcesApplied": "True", "ResourcesHealthy": "True", "ResourcesProgressing": "False"}


def resource(
    name: str,
    *,
    namespace: str = "garden",
    has_class: bool = True,
    label: str = "",
    generation: int = 1,
    reason: str = "Because",
    **statuses: str,
) -> JsonObject:
    """Return a ManagedResource; without statuses it is healthy."""
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "generation": generation,
            "labels": {"care.gardener.cloud/condition-type": label} if label else {},
        },
        "spec": {"class": "seed"} if has_class else {},
        "status": {
            "observedGeneration": 1,
            "conditions": [
                {"type": kind, "status": status, "reason": reason, "message": f"{kind} of {name}"}
                for kind, status in (GOOD | statuses).items()
                if status
            ],
        },
    }


def seen(*resources: JsonObject) -> dict[Key, SeenResource]:
    """Return ManagedResources as the cache keeps them."""
    return {Key.of(each): SeenResource.of(each) for each in resources}


def observed(*resources: JsonObject, **changes: Any) -> Observed:
    """Return observations of a healthy Garden, with these ManagedResources and changes."""
    healthy: Mapping[str, Any] = {
        "resources": seen(*resources),
        "expected": (),
        "etcds": dict.fromkeys(ETCDS, ""),
        "deployments": dict.fromkeys(DEPLOYMENTS, ""),
        "probe": Probe(200, "ok"),
    }
    return Observed(**{**healthy, **changes})
