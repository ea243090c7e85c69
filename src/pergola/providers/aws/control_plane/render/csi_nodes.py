"""Parts that the CSI drivers on nodes share (spec 31 §7.2)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import host_path

KUBELET: Final = "/var/lib/kubelet"
TOLERATIONS: Final = (
    {"effect": "NoSchedule", "operator": "Exists"},
    {"key": "CriticalAddonsOnly", "operator": "Exists"},
    {"effect": "NoExecute", "operator": "Exists"},
)
"""A pod with a volume cannot start on a node without the driver."""


def health_probe(**timing: int) -> JsonObject:
    """Return a probe of the port that a liveness sidecar serves for the driver."""
    return {
        "httpGet": {"path": "/healthz", "port": "healthz"},
        "initialDelaySeconds": 10,
        "timeoutSeconds": 3,
        "failureThreshold": 5,
        **timing,
    }


def kubelet_volumes(driver: str) -> list[JsonObject]:
    """Return the directories through which kubelet finds a driver and its mounts."""
    return [
        host_path("kubelet-dir", KUBELET, "Directory"),
        host_path("plugin-dir", f"{KUBELET}/plugins/{driver}/", "DirectoryOrCreate"),
        host_path("registration-dir", f"{KUBELET}/plugins_registry/", "Directory"),
    ]
