"""Where Calico's objects cannot follow a house rule, and why (see `pergola.bundle.lint`)."""

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
        "the cluster proportional vertical autoscaler can be asked nothing"
    ),
    "probes Deployment kube-system/calico-node-vertical-autoscaler": (
        "the cluster proportional vertical autoscaler can be asked nothing"
    ),
}
"""By rule and object, the reason."""
