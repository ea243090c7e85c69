"""What the controller watches, and which Nodes an event is about."""

from collections.abc import Collection
from dataclasses import dataclass

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
from pergola.runtime.controlling.queue import Queue


@dataclass(frozen=True, slots=True)
class Watches:
    """What is watched, and how it is looked up."""

    nodes: Cache[SeenNode]
    pods: Caches[SeenPod]
    daemon_sets: Caches[SeenDaemonSet]
    csi_nodes: Cache[frozenset[str]]
    pods_by_node: Index[SeenPod, str]
    tainted: Index[SeenNode, str]

    @classmethod
    def of(cls, client: Client, namespaces: Collection[str]) -> "Watches":
        """The caches, which fill when they run; Pods and DaemonSets only of these namespaces."""
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
        """The node-critical Pods of a Node."""
        found = ((key, self.pods.get(key)) for key in self.pods_by_node.keys(node))
        return {key: pod for key, pod in found if pod is not None}

    @property
    def is_live(self) -> bool:
        """Whether what is known of Pods, DaemonSets and CSINodes is of now."""
        return self.pods.is_synced and self.daemon_sets.is_synced and self.csi_nodes.is_synced


@dataclass(frozen=True, slots=True)
class Wakes:
    """Which events want a run for which tainted Nodes."""

    watches: Watches
    queue: Queue[Key]

    def subscribe(self) -> None:
        """Listens from now on."""
        self.watches.nodes.subscribe(self.on_node)
        self.watches.pods.subscribe(self.on_pod)
        self.watches.daemon_sets.subscribe(self.on_daemon_set)
        self.watches.csi_nodes.subscribe(self.on_csi_node)

    def on_node(self, change: Change[SeenNode]) -> None:
        """A Node that has the taint, and is not as it was."""
        old, new = change.old, change.new
        if new is None:
            matters = old is not None and old.is_tainted  # a run forgets what is remembered of it
        elif old is None or not new.is_tainted:
            matters = new.is_tainted
        else:
            matters = (old.uid, old.labels, old.taints) != (new.uid, new.labels, new.taints)
        if matters:
            self.queue.add(change.key)

    def on_pod(self, change: Change[SeenPod]) -> None:
        """The Node of a Pod."""
        if change.old != change.new:
            for pod in (change.old, change.new):
                if pod is not None:
                    self._wake(Key("", pod.node))

    def on_daemon_set(self, change: Change[SeenDaemonSet]) -> None:
        """All Nodes: which of them the DaemonSet chooses may have changed."""
        if change.old != change.new:
            for key in self.watches.tainted.keys(TAINT):
                self.queue.add(key)

    def on_csi_node(self, change: Change[frozenset[str]]) -> None:
        """The Node of the same name."""
        if change.old != change.new:
            self._wake(change.key)

    def _wake(self, key: Key) -> None:
        if key in self.watches.tainted.keys(TAINT):
            self.queue.add(key)
