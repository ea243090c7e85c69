"""Reporting why Nodes are not ready, and removing the taint from those that are."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from pergola.api.kinds import DAEMON_SET, NODE
from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.resource_manager.controllers.node_critical_components.checks import (
    Checked,
    Problem,
    check,
    without_taint,
)
from pergola.resource_manager.controllers.node_critical_components.seen import TAINT, SeenNode
from pergola.resource_manager.controllers.node_critical_components.watches import Watches, triggers
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.controller import DONE, Again, Outcome
from pergola.runtime.controlling.events import Recorder, Regarding
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics

log = get_logger("node-critical-components")

NAME: Final = "node-critical-components"
READY: Final = "NodeCriticalComponentsReady"
READY_NOTE: Final = "All node-critical components got ready, removing taint"
INTOLERANT: Final = "NodeCriticalDaemonSetLacksToleration"
_INTOLERANT_NOTE: Final = (
    f"the DaemonSet is node-critical but does not tolerate the taint {TAINT}: no Node waits for "
    f'it. Add the toleration {{key: "{TAINT}", operator: Exists, effect: NoSchedule}} to its '
    "pod template"
)
_DEADLINE: Final = 180.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of this controller.

    Attributes:
        backoff: The seconds between two checks and reports of a Node that is not ready.
        critical_namespaces: The namespaces of the DaemonSets and Pods that count.
    """

    workers: int = 5
    backoff: float = 10.0
    critical_namespaces: tuple[str, ...] = ("kube-system",)


def node_critical_components(
    client: Client, settings: Settings, *, metrics: Metrics, clock: Clock | None = None
) -> Unit:
    """Return the controller `node-critical-components`, on the target cluster."""
    watches = Watches.of(client, settings.critical_namespaces)
    recorder = Recorder(client, f"{NAME}-controller", clock=clock)
    reconciler = NodeCriticalComponents(client, watches, recorder, settings)
    return Controller(
        NAME,
        reconciler.reconcile,
        watches=triggers(watches),
        workers=settings.workers,
        metrics=metrics,
        deadline=_DEADLINE,
        tasks=[recorder.run],
    )


class NodeCriticalComponents:
    """The reconciler of Nodes."""

    def __init__(
        self, client: Client, watches: Watches, recorder: Recorder, settings: Settings
    ) -> None:
        self._client = client
        self._watches = watches
        self._recorder = recorder
        self._backoff = settings.backoff
        self._waiting: dict[str, _Waiting] = {}

    async def reconcile(self, key: Key) -> Outcome:
        """Remove the taint from one Node, or report why it is not ready."""
        node = self._watches.nodes.get(key)
        if node is None or not node.is_tainted:
            self._waiting.pop(key.name, None)
            return DONE
        found = self._check(key, node)
        self._report_intolerant(found)
        if found.problems:
            return Again(self._report(key, node, found.problems))
        if not self._watches.is_live:
            return Again(self._backoff)  # the cache may lag behind
        await self._release(key, node)
        return DONE

    def _check(self, key: Key, node: SeenNode) -> Checked:
        watches = self._watches
        return check(
            key.name,
            node,
            watches.daemon_sets.items(),
            watches.pods_on(key.name),
            watches.csi_nodes.get(key) or frozenset(),
        )

    def _report(self, key: Key, node: SeenNode, problems: list[Problem]) -> float:
        """Record Events for a Node's problems, once per backoff; return the remaining seconds.

        Each pod that becomes ready triggers a run; most of those need no Event.
        """
        now = asyncio.get_running_loop().time()
        waiting = self._waiting.setdefault(key.name, _Waiting(since=now))
        if (left := waiting.told_at + self._backoff - now) > 0:
            return left
        waiting.told_at = now
        for problem in problems:
            self._recorder.warning(_regarding(key, node), problem.reason, problem.note)
        log.info(
            "node waits",
            node=key.name,
            seconds=round(now - waiting.since, 1),
            reasons=[problem.reason for problem in problems],
        )
        return self._backoff

    def _report_intolerant(self, found: Checked) -> None:
        for key in found.intolerant:
            daemon_set = self._watches.daemon_sets.get(key)
            if daemon_set is not None:
                about = Regarding(DAEMON_SET, key, daemon_set.uid)
                self._recorder.warning(about, INTOLERANT, _INTOLERANT_NOTE)

    async def _release(self, key: Key, node: SeenNode) -> None:
        self._recorder.normal(_regarding(key, node), READY, READY_NOTE)
        metadata = {"resourceVersion": node.version}
        spec = {"taints": without_taint(node.taints)}
        with suppress(NotFound):
            patched = await self._client.patch(NODE, key, {"metadata": metadata, "spec": spec})
            self._watches.nodes.observe(patched)
            waited = self._waiting.pop(key.name, None)
            now = asyncio.get_running_loop().time()
            seconds = round(now - waited.since, 1) if waited else 0.0
            log.info("taint removed", node=key.name, seconds=seconds)


@dataclass(slots=True)
class _Waiting:
    """The times when a Node began to wait and was last reported, in seconds of the loop's clock."""

    since: float
    told_at: float = float("-inf")


def _regarding(key: Key, node: SeenNode) -> Regarding:
    return Regarding(NODE, key, node.uid, node.version)
