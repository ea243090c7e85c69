"""The caches of the controller, and the Nodes that an event triggers."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pergola.api.kinds import CSI_NODE, DAEMON_SET, NODE, POD
from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.resource_manager.controllers.node_critical_components.seen import (
    CRITICAL,
    TAINT,
    SeenDaemonSet,
    SeenNode,
    SeenPod,
    keep_csi_node,
    keep_daemon_set,
    keep_node,
    keep_pod,
)
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.caches import Caches
from pergola.runtime.caching.index import Index
from pergola.runtime.controlling.watches import Watch, changed


@dataclass(frozen=True, slots=True)
class Watches:
    """The caches and lookups."""

    nodes: Cache[SeenNode]
    pods: Caches[SeenPod]
    daemon_sets: Caches[SeenDaemonSet]
    csi_nodes: Cache[frozenset[str]]
    pods_by_node: Index[SeenPod, str]
    tainted: Index[SeenNode, str]

    @classmethod
    def of(cls, client: Client, namespaces: Collection[str]) -> "Watches":
        """Create the caches, with the Pods and DaemonSets of these namespaces only."""
        labels = f"{CRITICAL}=true"
        nodes = Cache(client, NODE, keep_node)
        pods = Caches(client, POD, keep_pod, namespaces=namespaces, labels=labels)
        return cls(
            nodes=nodes,
            pods=pods,
            daemon_sets=Caches(
                client, DAEMON_SET, keep_daemon_set, namespaces=namespaces, labels=labels
            ),
            csi_nodes=Cache(client, CSI_NODE, keep_csi_node),
            pods_by_node=Index(pods, lambda _, pod: [pod.node] if pod.node else []),
            tainted=Index(nodes, lambda _, node: [TAINT] if node.is_tainted else []),
        )

    def pods_on(self, node: str) -> dict[Key, SeenPod]:
        """Return the node-critical Pods of a Node."""
        found = ((key, self.pods.get(key)) for key in self.pods_by_node.keys(node))
        return {key: pod for key, pod in found if pod is not None}

    @property
    def is_live(self) -> bool:
        """Whether the caches of Pods, DaemonSets and CSINodes are up to date."""
        return self.pods.is_synced and self.daemon_sets.is_synced and self.csi_nodes.is_synced


def triggers(watches: Watches) -> list[Watch[Any, Key]]:
    """Return the triggers of tainted Nodes."""

    def tainted(keys: Iterable[Key]) -> Iterator[Key]:
        waiting = watches.tainted.keys(TAINT)
        return (key for key in keys if key in waiting)

    def of_pod(change: Change[SeenPod]) -> Iterator[Key]:
        pods = filter(None, (change.old, change.new))
        return tainted(Key("", pod.node) for pod in pods)

    return [
        Watch(watches.nodes, when=node_matters),
        Watch(watches.pods, to=of_pod, when=changed),
        # A DaemonSet may now select other Nodes.
        Watch(watches.daemon_sets, to=lambda _: watches.tainted.keys(TAINT), when=changed),
        Watch(watches.csi_nodes, to=lambda change: tainted([change.key]), when=changed),
    ]


def node_matters(change: Change[SeenNode]) -> bool:
    """Return whether a Node received the taint, or has it and changed."""
    old, new = change.old, change.new
    if new is None:
        return old is not None and old.is_tainted  # a run drops its state
    if old is None or not new.is_tainted:
        return new.is_tainted
    return (old.uid, old.labels, old.taints) != (new.uid, new.labels, new.taints)
