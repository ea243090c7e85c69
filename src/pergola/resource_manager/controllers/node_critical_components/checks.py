"""Reasons why a Node is not ready: three checks in the order of spec 11 §5.3, as pure functions."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, Key
from pergola.resource_manager.controllers.node_critical_components.scheduling import (
    is_chosen,
    untolerated,
)
from pergola.resource_manager.controllers.node_critical_components.seen import (
    TAINT,
    SeenDaemonSet,
    SeenNode,
    SeenPod,
)

UNSCHEDULED: Final = "UnscheduledNodeCriticalDaemonSets"
UNREADY: Final = "UnreadyNodeCriticalPods"
UNREGISTERED: Final = "UnreadyRequiredCSIDrivers"
_CONDITIONS: Final = "node.kubernetes.io/"


class Problem(NamedTuple):
    """A reason why a Node is not ready, as the reason and note of an Event."""

    reason: str
    note: str


class Checked(NamedTuple):
    """The result of the checks.

    Attributes:
        problems: In the order of the checks; empty if the Node is ready.
        intolerant: DaemonSets that would run on the Node but do not tolerate the taint.
    """

    problems: list[Problem]
    intolerant: list[Key]


def check(
    name: str,
    node: SeenNode,
    daemon_sets: Iterable[tuple[Key, SeenDaemonSet]],
    pods: Mapping[Key, SeenPod],
    drivers: Collection[str],
) -> Checked:
    """Run all three checks of a Node.

    Args:
        pods: The node-critical Pods on the Node.
        drivers: The CSI drivers that are registered on the Node.
    """
    counting = counting_pods(pods)
    covered = {pod.daemon_set for pod in counting.values()}
    desired, intolerant = _desired(name, node, daemon_sets)
    missing = [key for key, uid in desired if uid not in covered]
    unready = [key for key, pod in counting.items() if not pod.ready]
    required = frozenset().union(*(pod.drivers for pod in counting.values()))
    problems = []
    if missing:
        text = "Node-critical DaemonSets found that were not scheduled to Node yet: "
        problems.append(Problem(UNSCHEDULED, text + _listed(missing)))
    if unready:
        text = "Unready node-critical Pods found on Node: "
        problems.append(Problem(UNREADY, text + _listed(unready)))
    if absent := required.difference(drivers):
        text = f"Unready required CSI drivers for Node: [{', '.join(sorted(absent))}]"
        problems.append(Problem(UNREGISTERED, text))
    return Checked(problems, sorted(intolerant))


def counting_pods(pods: Mapping[Key, SeenPod]) -> dict[Key, SeenPod]:
    """Return the relevant Pods: not completed, nor deleted and replaced."""
    staying = {
        pod.daemon_set
        for pod in pods.values()
        if pod.daemon_set and not pod.completed and not pod.deleting
    }
    return {
        key: pod
        for key, pod in pods.items()
        if not pod.completed and not (pod.deleting and pod.daemon_set in staying)
    }


def without_taint(taints: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the taints of a Node, in order, without ours."""
    return [taint for taint in taints if taint.get("key") != TAINT]


def _desired(
    name: str, node: SeenNode, daemon_sets: Iterable[tuple[Key, SeenDaemonSet]]
) -> tuple[list[tuple[Key, str]], list[Key]]:
    """Return the DaemonSets that should run on a Node, by uid, and those that our taint repels."""
    desired, intolerant = [], []
    for key, daemon_set in daemon_sets:
        placement = daemon_set.placement
        if not daemon_set.counts or not is_chosen(placement, name, node.labels):
            continue
        away = untolerated(placement.tolerations, node.taints)
        if not away:
            desired.append((key, daemon_set.uid))
        elif _only_ours_stays(away):
            intolerant.append(key)
    return desired, intolerant


def _only_ours_stays(away: Iterable[JsonObject]) -> bool:
    """Return whether only our taint and temporary conditions of the Node repel pods."""
    keys = {str(taint.get("key")) for taint in away}
    return TAINT in keys and all(key.startswith(_CONDITIONS) for key in keys - {TAINT})


def _listed(keys: Iterable[Key]) -> str:
    return ", ".join(str(key) for key in sorted(keys))
