"""Facts about objects that determine whether a Node is ready."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pergola.api.kinds import DAEMON_SET
from pergola.api.objects import (
    JsonObject,
    annotations_of,
    deletion_timestamp_of,
    labels_of,
    map_at,
    maps_at,
    owner_references_of,
    resource_version_of,
    uid_of,
)
from pergola.resource_manager.controllers.node_critical_components.scheduling import (
    Placement,
    placement_of,
)

TAINT: Final = "node.gardener.cloud/critical-components-not-ready"
CRITICAL: Final = "node.gardener.cloud/critical-component"
WAIT_FOR_CSI_PREFIX: Final = "node.gardener.cloud/wait-for-csi-node-"

_COMPLETED: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class SeenNode:
    """A Node. Labels and taints are kept only while it has our taint, which most Nodes do not."""

    uid: str
    version: str
    labels: Mapping[str, str]
    taints: Sequence[JsonObject]

    @property
    def is_tainted(self) -> bool:
        """Whether the Node has the taint."""
        return bool(self.taints)


@dataclass(frozen=True, slots=True)
class SeenPod:
    """A node-critical Pod.

    Attributes:
        daemon_set: The uid of the DaemonSet that controls it, or empty.
        drivers: The CSI drivers that its Node must have.
    """

    node: str
    daemon_set: str
    ready: bool
    completed: bool
    deleting: bool
    drivers: frozenset[str]


@dataclass(frozen=True, slots=True)
class SeenDaemonSet:
    """A node-critical DaemonSet; `counts` tells whether its pods are critical as well."""

    uid: str
    counts: bool
    placement: Placement


def keep_node(node: JsonObject) -> SeenNode:
    """Return the facts about a Node that the cache keeps."""
    taints = maps_at(node, "spec", "taints")
    tainted = any(taint.get("key") == TAINT for taint in taints)
    return SeenNode(
        uid=uid_of(node),
        version=resource_version_of(node),
        labels=labels_of(node) if tainted else {},
        taints=taints if tainted else (),
    )


def keep_pod(pod: JsonObject) -> SeenPod:
    """Return the facts about a node-critical Pod that the cache keeps."""
    conditions = maps_at(pod, "status", "conditions")
    annotations = annotations_of(pod)
    return SeenPod(
        node=map_at(pod, "spec").get("nodeName") or "",
        daemon_set=_daemon_set(pod),
        ready=any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions),
        completed=map_at(pod, "status").get("phase") in _COMPLETED,
        deleting=deletion_timestamp_of(pod) is not None,
        drivers=frozenset(v for k, v in annotations.items() if k.startswith(WAIT_FOR_CSI_PREFIX)),
    )


def keep_daemon_set(daemon_set: JsonObject) -> SeenDaemonSet:
    """Return the facts about a DaemonSet; a deleted one creates no more pods."""
    template = map_at(daemon_set, "spec", "template")
    critical = labels_of(template).get(CRITICAL) == "true"
    return SeenDaemonSet(
        uid=uid_of(daemon_set),
        counts=critical and deletion_timestamp_of(daemon_set) is None,
        placement=placement_of(map_at(template, "spec")),
    )


def keep_csi_node(csi_node: JsonObject) -> frozenset[str]:
    """Return the names of a CSINode's drivers."""
    return frozenset(map(_driver_name, maps_at(csi_node, "spec", "drivers")))


def _driver_name(driver: Mapping[str, Any]) -> str:
    name = driver.get("name")
    return name if isinstance(name, str) else ""


def _daemon_set(pod: JsonObject) -> str:
    for owner in owner_references_of(pod):
        if owner.get("controller") and owner.get("kind") == DAEMON_SET.kind:
            return (owner.get("uid") or "") if owner.get("apiVersion") == "apps/v1" else ""
    return ""
