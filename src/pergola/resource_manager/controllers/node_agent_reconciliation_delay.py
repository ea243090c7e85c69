"""Delays that spread the reconciliations of node agents, as an annotation on Nodes (spec 11 §7.1).

Node i of n, ordered by name, gets the delay min + i·(max - min)/n. When a Node joins or leaves, all
other delays change slightly. Nodes without a usable delay are written at once; the others wait
until the set of Nodes has been stable for `settling` seconds, up to a limit. A thousand Nodes
joining within a minute thus cost two thousand writes instead of half a million.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from pergola.api.durations import DurationError, format_duration, parse_duration
from pergola.api.kinds import NODE, SECRET
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    labels_of,
    resource_version_of,
)
from pergola.api.texts import abridged
from pergola.kube.client import Client
from pergola.kube.errors import Conflict, KubeError, NotFound
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.controlling.controller import DONE, Again, Outcome, ReconcileError
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch, one_key
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.task_group import gathered

log = get_logger("node-agent-reconciliation-delay")

NAME: Final = "node-agent-reconciliation-delay"
DELAY: Final = "node-agent.gardener.cloud/reconciliation-delay"
SECRET_NAME: Final = "worker.gardener.cloud/gardener-node-agent-secret-name"  # noqa: S105 - a label
SERIAL: Final = "reconciliation.osc.node-agent.gardener.cloud/serial"
_NAMESPACE: Final = "kube-system"
_OSC_SECRETS: Final = "gardener.cloud/role=operating-system-config"
_ALL: Final = "nodes"
_AT_ONCE: Final = 16
_DEADLINE: Final = 180.0
_SECOND: Final = timedelta(seconds=1)
_MICROSECOND: Final = timedelta(microseconds=1)
_LONGEST_WAIT: Final = 12  # times the settling period


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of this controller.

    Attributes:
        settling: The seconds without a join or leave before existing delays are rewritten; they
            wait at most twelve times as long.
    """

    min_delay: timedelta = timedelta()
    max_delay: timedelta = timedelta(minutes=5)
    settling: float = 5.0


def node_agent_reconciliation_delay(
    client: Client, settings: Settings, *, metrics: Metrics
) -> Unit:
    """Return the controller `node-agent-reconciliation-delay`, on the target cluster."""
    nodes = Cache(client, NODE, keep_node, metadata_only=True)
    secrets = Cache(
        client,
        SECRET,
        keep_secret,
        namespace=_NAMESPACE,
        labels=_OSC_SECRETS,
        metadata_only=True,
    )
    reconciler = NodeAgentReconciliationDelay(client, nodes, secrets, settings)
    return Controller(
        NAME,
        reconciler.reconcile,
        watches=[
            Watch(nodes, to=one_key(_ALL), when=reconciler.concerns),
            Watch(secrets, to=one_key(_ALL), when=_takes_turns_now),
        ],
        metrics=metrics,
        deadline=_DEADLINE,
    )


def _takes_turns_now(change: Change[bool]) -> bool:
    """Return whether the Nodes of an operating system config started or stopped taking turns."""
    return bool(change.old) != bool(change.new)


@dataclass(frozen=True, slots=True)
class SeenNode:
    """The facts about a Node; `delay` is the annotation, or None."""

    version: str
    secret: str
    delay: str | None


def keep_node(node: JsonObject) -> SeenNode:
    """Return the facts about a Node that the cache keeps."""
    return SeenNode(
        version=resource_version_of(node),
        secret=labels_of(node).get(SECRET_NAME, ""),
        delay=annotations_of(node).get(DELAY),
    )


def keep_secret(secret: JsonObject) -> bool:
    """Return whether the Nodes of an operating system config take turns."""
    return annotations_of(secret).get(SERIAL) == "true"


class NodeAgentReconciliationDelay:
    """The reconciler, with a single key for all Nodes."""

    def __init__(
        self,
        client: Client,
        nodes: Cache[SeenNode],
        secrets: Cache[bool],
        settings: Settings,
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._secrets = secrets
        self._settings = settings
        self._joined_at = float("-inf")
        self._behind_since: float | None = None

    def concerns(self, change: Change[SeenNode]) -> bool:
        """Return whether a change requires a run; record when the set of Nodes changed."""
        old, new = change.old, change.new
        if old is None or new is None or old.secret != new.secret:
            if not change.initial:
                self._joined_at = asyncio.get_running_loop().time()
            return True
        return old.delay != new.delay

    async def reconcile(self, _: str) -> Outcome:
        """Write the delay of each Node that does not take turns."""
        nodes = {key.name: node for key, node in self._nodes.items() if not self._is_serial(node)}
        settings = self._settings
        desired = delays(nodes, settings.min_delay, settings.max_delay)
        behind = {name for name, delay in desired.items() if nodes[name].delay != delay}
        left = self._seconds_to_wait(is_behind=bool(behind))
        if left > 0:
            shortest, longest = settings.min_delay, settings.max_delay
            behind = {n for n in behind if not is_usable(nodes[n].delay, shortest, longest)}
        await self._annotate({name: (nodes[name], desired[name]) for name in behind})
        return Again(left) if left > 0 else DONE

    def _seconds_to_wait(self, *, is_behind: bool) -> float:
        """Return how long Nodes keep a usable but inexact delay; 0 to rewrite it now."""
        if not is_behind:
            self._behind_since = None
            return 0.0
        now, settling = asyncio.get_running_loop().time(), self._settings.settling
        if self._behind_since is None:
            self._behind_since = now
        until = min(self._joined_at + settling, self._behind_since + _LONGEST_WAIT * settling)
        return max(0.0, until - now)

    def _is_serial(self, node: SeenNode) -> bool:
        return bool(node.secret and self._secrets.get(Key(_NAMESPACE, node.secret)))

    async def _annotate(self, nodes: Mapping[str, tuple[SeenNode, str]]) -> None:
        limit = asyncio.Semaphore(_AT_ONCE)

        async def one(name: str, node: SeenNode, delay: str) -> KubeError | None:
            metadata = {"resourceVersion": node.version, "annotations": {DELAY: delay}}
            async with limit:
                try:
                    with suppress(NotFound):
                        patched = await self._client.patch(
                            NODE, Key("", name), {"metadata": metadata}
                        )
                        self._nodes.observe(patched)
                except KubeError as error:
                    return error
            return None

        outcomes = await gathered(one(n, node, d) for n, (node, d) in nodes.items())
        problems = dict(zip(nodes, outcomes, strict=True))
        _raise_for({name: error for name, error in problems.items() if error is not None})
        if nodes:
            log.info("delays written", nodes=len(nodes))


def delays(names: Iterable[str], shortest: timedelta, longest: timedelta) -> dict[str, str]:
    """Return the delay of each Node in Go's duration format, truncated to whole nanoseconds.

    The original computes with floating-point seconds, so its delays may be a nanosecond shorter
    than exact ones. These are the same, or a takeover would rewrite every Node.
    """
    # Python orders strings by code point, which is also the order of their UTF-8 bytes.
    ordered = sorted(names)
    least, most = _seconds(shortest), _seconds(longest)
    return {
        name: go_duration(int((least + place * ((most - least) / len(ordered))) * 1e9))
        for place, name in enumerate(ordered)
    }


def is_usable(delay: str | None, shortest: timedelta, longest: timedelta) -> bool:
    """Return whether a delay is a duration within the bounds, exact or not."""
    try:
        return shortest <= parse_duration(delay or "") <= longest
    except DurationError:
        return False


def go_duration(nanoseconds: int) -> str:
    """Format a non-negative duration as Go does: `5.806451612s`, `1m30s`, `1.5ms`."""
    microseconds, rest = divmod(nanoseconds, 1_000)
    if not rest:
        return format_duration(timedelta(microseconds=microseconds))
    if nanoseconds < 1_000:
        return f"{nanoseconds}ns"
    unit, size = ("µs", 1_000) if nanoseconds < 1_000_000 else ("ms", 1_000_000)
    if nanoseconds < 1_000_000_000:
        whole, fraction = divmod(nanoseconds, size)
        return f"{whole}.{_decimals(fraction, size)}{unit}"
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    whole_seconds = format_duration(timedelta(seconds=seconds))[:-1]
    return f"{whole_seconds}.{_decimals(fraction, 1_000_000_000)}s"


def _decimals(fraction: int, size: int) -> str:
    return str(size + fraction)[1:].rstrip("0")


def _seconds(duration: timedelta) -> float:
    """Return seconds, rounded as Go does: a whole number, plus a fraction."""
    whole, rest = divmod(duration, _SECOND)
    return whole + rest // _MICROSECOND * 1_000 / 1e9


def _raise_for(problems: Mapping[str, KubeError]) -> None:
    """Raise the errors that require a retry; a Conflict alone is not reported."""
    if not problems:
        return
    errors: Collection[KubeError] = problems.values()
    if all(isinstance(error, Conflict) for error in errors):
        raise next(iter(errors))
    nodes = [f"Node {name}: {error}" for name, error in sorted(problems.items())]
    raise ReconcileError(f"{len(problems)} Nodes not annotated: {abridged(nodes, separator='; ')}")
