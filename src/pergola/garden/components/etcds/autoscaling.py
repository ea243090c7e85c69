"""The VerticalPodAutoscalers of the etcds (spec 20 §15.1)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.etcds import access
from pergola.garden.components.etcds.etcd import API_VERSION, least
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import manifest

_REQUIREMENTS: Final = "autoscaling.gardener.cloud/eviction-requirements"
_DOWNSCALE: Final = "eviction-requirements.autoscaling.gardener.cloud/downscale-restriction"
_WINDOW: Final = "shoot.gardener.cloud/maintenance-window"


def autoscaler(landscape: Landscape, role: str) -> JsonObject:
    """Return the autoscaler of an etcd; it leaves the requests of the backup sidecar alone."""
    policy = {
        "containerName": "etcd",
        "controlledValues": "RequestsOnly",
        "minAllowed": least(landscape, role),
        "mode": "Auto",
    }
    return manifest(
        "autoscaling.k8s.io/v1",
        "VerticalPodAutoscaler",
        access.name(role),
        namespace=NAMESPACE,
        labels={_REQUIREMENTS: "managed-by-controller", "role": f"etcd-vpa-{role}"},
        annotations=_evictions(landscape, role),
        spec={
            "targetRef": {
                "apiVersion": API_VERSION,
                "kind": "Etcd",
                "name": access.name(role),
            },
            "updatePolicy": {"updateMode": "InPlaceOrRecreate"},
            "resourcePolicy": {
                "containerPolicies": [policy, {"containerName": "*", "mode": "Off"}]
            },
        },
    )


def _evictions(landscape: Landscape, role: str) -> dict[str, str]:
    """Return the annotations that restrict evictions for downscaling; the main etcd allows none."""
    if role == access.MAIN:
        return {_DOWNSCALE: "never"}
    window = landscape.virtual.maintenance.time_window
    return {
        _DOWNSCALE: "in-maintenance-window-only",
        _WINDOW: f"{window.begin},{window.end}",
    }
