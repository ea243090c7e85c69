"""House rules that Calico's objects cannot follow, with the reasons (`pergola.bundle.lint`)."""

from collections.abc import Mapping
from typing import Final

EXCEPTIONS: Final[Mapping[str, str]] = {
    "run-as-non-root DaemonSet kube-system/calico-node": (
        "routes, tunnels and filters of a node belong to root"
    ),
    "run-as-non-root DaemonSet kube-system/multus": "it writes CNI plugins to the node",
    "privilege-escalation DaemonSet kube-system/calico-node": (
        "without privileges, the programs of calico-node need their file capabilities"
    ),
    "probes Deployment kube-system/calico-typha-vertical-autoscaler": (
        "the cluster proportional vertical autoscaler has no health endpoint"
    ),
    "probes Deployment kube-system/calico-node-vertical-autoscaler": (
        "the cluster proportional vertical autoscaler has no health endpoint"
    ),
}
"""The reason, by rule and object."""
