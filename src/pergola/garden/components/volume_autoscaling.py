"""Objects that let pvc-autoscaler enlarge the volumes of workloads."""

from collections.abc import Mapping
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import manifest

GROUP: Final = "autoscaling.gardener.cloud"
AUTOSCALER: Final = "garden"
"""Selects the objects that the Garden's autoscaler handles."""

_MOST: Final = "200Gi"


def absent(landscape: Landscape) -> str | None:
    """Return why the Garden has no volume autoscaler, or None if it has one."""
    settings = landscape.runtime.settings.persistent_volume_claim_autoscaler
    if settings is not None and settings.enabled:
        return None
    return "spec.runtimeCluster.settings.persistentVolumeClaimAutoscaler.enabled is not true"


def volume_autoscaler(
    name: str, target: JsonObject, labels: Mapping[str, str], *, step: str
) -> JsonObject:
    """Return the object that lets the autoscaler enlarge the volumes of a workload.

    Args:
        step: The smallest enlargement.
    """
    steps = {"utilizationThresholdPercent": 70, "stepPercent": 10, "minStepAbsolute": step}
    return manifest(
        f"{GROUP}/v1alpha1",
        "PersistentVolumeClaimAutoscaler",
        name,
        namespace=NAMESPACE,
        labels=labels,
        spec={
            "autoscalerName": AUTOSCALER,
            "targetRef": target,
            "volumePolicies": [{"maxCapacity": _MOST, "scaleUp": steps}],
        },
    )
