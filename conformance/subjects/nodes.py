"""Nodes: when they have all critical components, and the delays of their agents."""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Final, TypeVar, cast

from hypothesis.strategies import SearchStrategy
from msgspec.structs import replace

from conformance.clusters import Cluster
from conformance.comparison import Difference, differences
from conformance.oracles import GARDENER, Answer, OracleModule
from conformance.strategies.nodes import nodes_with_agents, waiting_nodes
from pergola.api.durations import parse_duration
from pergola.api.kinds import CSI_NODE, DAEMON_SET, NODE, POD, SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    JsonValue,
    Key,
    annotations_of,
    deletion_timestamp_of,
    map_at,
    maps_at,
)
from pergola.resource_manager.controllers.node_agent_reconciliation_delay import (
    NodeAgentReconciliationDelay,
    SeenNode,
    Settings,
    keep_node,
    keep_secret,
)
from pergola.resource_manager.controllers.node_critical_components.controller import (
    NodeCriticalComponents,
)
from pergola.resource_manager.controllers.node_critical_components.controller import (
    Settings as WaitingSettings,
)
from pergola.resource_manager.controllers.node_critical_components.seen import (
    CRITICAL,
    keep_csi_node,
    keep_daemon_set,
    keep_pod,
)
from pergola.resource_manager.controllers.node_critical_components.seen import (
    keep_node as keep_waiting,
)
from pergola.resource_manager.controllers.node_critical_components.watches import Watches
from pergola.runtime.caching.cache import Cache
from pergola.runtime.controlling.controller import Again
from pergola.runtime.controlling.events import Recorder, Regarding

_T = TypeVar("_T")
_BACKOFF: Final = 10.0
_SYSTEM: Final = "kube-system"
_CONFIGS: Final = "gardener.cloud/role=operating-system-config"
_LISTED: Final = re.compile(r"[\w.-]+/[\w.-]+|(?<=\[).*(?=\])")
"""The names in a report: of objects, or of drivers in brackets."""


class CriticalComponents:
    """One Node, checked once. The original reports only the first of several problems."""

    name = "critical-components"
    ask = "critical-components"
    title = "Critical components of Nodes"
    of: OracleModule = GARDENER
    code = ("pergola.resource_manager.controllers.node_critical_components",)

    def table(self) -> Iterator[JsonObject]:
        """Yield nothing: random questions say it all."""
        yield from ()

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return Nodes with taints, DaemonSets, pods and CSI drivers."""
        return waiting_nodes()

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the taints, and the first report."""
        return _reported(answer.output)

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare what happens to the Node."""
        ours = _reported(asyncio.run(_checked(question)))
        has_leaving = any(map(_is_leaving, question["objects"]))
        for each in differences(self.meaning(answer), ours):
            yield replace(each, path=f"leaving: {each.path}") if has_leaving else each


class NodeDelays:
    """The annotations of all Nodes once they have settled."""

    name = "node-delays"
    ask = "node-delays"
    title = "Delays of node agents"
    of: OracleModule = GARDENER
    code = ("pergola.resource_manager.controllers.node_agent_reconciliation_delay",)

    def table(self) -> Iterator[JsonObject]:
        """Yield nothing: random questions say it all."""
        yield from ()

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return Nodes of several pools."""
        return nodes_with_agents()

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the annotations by Node."""
        return {name: found or {} for name, found in answer.output.items()}

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the annotations."""
        return differences(self.meaning(answer), asyncio.run(_annotated(question)))


class _Events:
    """A recorder that keeps what is reported."""

    def __init__(self) -> None:
        self.found: list[JsonValue] = []

    def warning(self, about: Regarding, reason: str, note: str) -> None:
        if about.gvk == NODE:
            self.found.append(f"Warning {reason} {note}")

    def normal(self, _: Regarding, reason: str, note: str) -> None:
        self.found.append(f"Normal {reason} {note}")


class _Copy(dict[Key, object]):
    """A cache that is filled once."""

    def observe(self, _: JsonObject) -> None:
        """Do nothing: there is one run."""


async def _checked(question: JsonObject) -> JsonObject:
    cluster, events = Cluster(question["objects"]), _Events()
    pods = {
        key: pod
        for key, pod in (await _kept(cluster, POD, keep_pod, CRITICAL)).items()
        if pod.node == question["node"]
    }
    watches = SimpleNamespace(
        nodes=_Copy(await _kept(cluster, NODE, keep_waiting)),
        daemon_sets=await _kept(cluster, DAEMON_SET, keep_daemon_set, CRITICAL),
        csi_nodes=await _kept(cluster, CSI_NODE, keep_csi_node),
        pods_on=lambda _: pods,
        is_live=True,
    )
    reconciler = NodeCriticalComponents(
        cluster.client,
        cast("Watches", watches),
        cast("Recorder", events),
        WaitingSettings(backoff=_BACKOFF),
    )
    outcome = await reconciler.reconcile(Key("", question["node"]))
    node = await cluster.get(NODE, Key("", question["node"]))
    return {
        "taints": maps_at(node, "spec", "taints"),
        "again": outcome.seconds if isinstance(outcome, Again) else 0,
        "events": events.found,
    }


async def _kept(
    cluster: Cluster, gvk: GroupVersionKind, keep: Callable[[JsonObject], _T], label: str = ""
) -> dict[Key, _T]:
    """Return what a cache keeps of objects of a kind; with a label, only in kube-system."""
    selector, namespace = (f"{label}=true", _SYSTEM) if label else (None, None)
    return {Key.of(obj): keep(obj) for obj in await cluster.list(gvk, namespace, labels=selector)}


def _reported(output: JsonObject) -> JsonValue:
    events: list[str] = output.get("events") or []
    return {
        "taints": [{k: v for k, v in taint.items() if v} for taint in maps_at(output, "taints")],
        "again": output.get("again"),
        "event": [_sorted(event) for event in events[:1]],
    }


def _sorted(event: str) -> str:
    """Return a report without its names, and those in order."""
    names = sorted(name for found in _LISTED.findall(event) for name in re.split(",? ", found))
    return f"{_LISTED.sub('', event)} {names}"


def _is_leaving(obj: JsonObject) -> bool:
    is_completed = map_at(obj, "status").get("phase") in ("Succeeded", "Failed")
    return is_completed or deletion_timestamp_of(obj) is not None


async def _annotated(question: JsonObject) -> JsonObject:
    cluster = Cluster(question["objects"])
    nodes = _Copy(await _kept(cluster, NODE, keep_node))
    secrets = await cluster.list(SECRET, _SYSTEM, labels=_CONFIGS)
    reconciler = NodeAgentReconciliationDelay(
        cluster.client,
        cast("Cache[SeenNode]", nodes),
        cast("Cache[bool]", {Key.of(secret): keep_secret(secret) for secret in secrets}),
        Settings(parse_duration(question["min"]), parse_duration(question["max"]), settling=0.0),
    )
    await reconciler.reconcile("nodes")
    found = await cluster.list(NODE)
    return {Key.of(node).name: {**annotations_of(node)} for node in found}
