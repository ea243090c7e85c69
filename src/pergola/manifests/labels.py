"""Labels with which Gardener's controllers and network policies select pods."""

from typing import Final

CRITICAL_COMPONENT: Final = {"node.gardener.cloud/critical-component": "true"}
"""On pods that a node must run before it accepts others."""

SYSTEM_COMPONENT: Final = {"gardener.cloud/role": "system-component"}

HIGH_AVAILABILITY: Final = "high-availability-config.resources.gardener.cloud/type"
"""On Deployments and StatefulSets whose replicas a webhook sets: `controller` or `server`."""

_ALLOWED: Final = "allowed"
TO_API_SERVER: Final = {"networking.gardener.cloud/to-apiserver": _ALLOWED}
TO_DNS: Final = {"networking.gardener.cloud/to-dns": _ALLOWED}
TO_PUBLIC_NETWORKS: Final = {"networking.gardener.cloud/to-public-networks": _ALLOWED}
