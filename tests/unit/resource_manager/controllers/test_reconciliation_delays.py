"""The delays of node agents, to the nanosecond: spec 11 §7.1."""

import asyncio
from datetime import timedelta
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.durations import parse_duration
from pergola.api.kinds import NODE
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.resource_manager.controllers.node_agent_reconciliation_delay import (
    NodeAgentReconciliationDelay,
    SeenNode,
    Settings,
    delays,
    go_duration,
    is_usable,
    keep_node,
    keep_secret,
)
from pergola.runtime.caching.cache import Cache, Change

SHORTEST, LONGEST = timedelta(seconds=5), timedelta(seconds=30)


def names(count: int) -> list[str]:
    """Return names of Nodes, in order."""
    return [f"node-{number:04}" for number in range(count)]


def test_delays_of_ten_nodes_are_spread_evenly() -> None:
    expected = ["5s", "7.5s", "10s", "12.5s", "15s", "17.5s", "20s", "22.5s", "25s", "27.5s"]
    assert list(delays(names(10), SHORTEST, LONGEST).values()) == expected


def test_delays_are_truncated_to_nanoseconds() -> None:
    found = list(delays(names(31), SHORTEST, LONGEST).values())
    assert found[:3] == ["5s", "5.806451612s", "6.612903225s"]


def test_delays_lose_a_nanosecond_where_those_of_the_original_do() -> None:
    found = delays(names(5), timedelta(), timedelta(seconds=7))
    assert [*found.values()] == ["0s", "1.4s", "2.8s", "4.199999999s", "5.6s"]


def test_a_single_node_gets_the_shortest_delay() -> None:
    assert delays(["a"], SHORTEST, LONGEST) == {"a": "5s"}


def test_without_nodes_there_are_no_delays() -> None:
    assert delays([], SHORTEST, LONGEST) == {}


def test_nodes_are_ordered_by_the_bytes_of_their_names() -> None:
    found = delays(["node-9", "node-10", "Node", "a.b", "a-b"], timedelta(), timedelta(seconds=5))
    assert found == {"Node": "0s", "a-b": "1s", "a.b": "2s", "node-10": "3s", "node-9": "4s"}


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (999, "999ns"),
        (1_000, "1µs"),
        (1_001, "1.001µs"),
        (1_010, "1.01µs"),
        (999_999, "999.999µs"),
        (1_000_000, "1ms"),
        (1_500_120, "1.50012ms"),
        (999_999_999, "999.999999ms"),
        (1_000_000_000, "1s"),
        (1_000_000_010, "1.00000001s"),
        (5_806_451_612, "5.806451612s"),
        (90_000_000_000, "1m30s"),
        (60_000_000_001, "1m0.000000001s"),
        (3_600_000_000_100, "1h0m0.0000001s"),
    ],
)
def test_durations_are_written_as_go_prints_them(nanoseconds: int, text: str) -> None:
    assert go_duration(nanoseconds) == text


@given(st.integers(min_value=0, max_value=10**15))
def test_a_written_duration_is_read_back(nanoseconds: int) -> None:
    read = parse_duration(go_duration(nanoseconds)) // timedelta(microseconds=1)
    assert read == -(-nanoseconds // 1_000)  # reading rounds up


@given(st.sets(st.text("abz.-0129", min_size=1, max_size=8), min_size=1, max_size=40))
def test_delays_grow_with_the_names_up_to_the_maximum(nodes: set[str]) -> None:
    found = delays(nodes, SHORTEST, LONGEST)
    values = [parse_duration(found[name]) for name in sorted(nodes)]
    assert values == sorted(set(values))
    assert values[0] == SHORTEST
    assert values[-1] < LONGEST
    assert all(is_usable(delay, SHORTEST, LONGEST) for delay in found.values())


@pytest.mark.parametrize(
    ("present", "usable"),
    [
        (None, False),
        ("", False),
        ("soon", False),
        ("4.9s", False),
        ("5s", True),
        ("17.123456789s", True),
        ("30s", True),
        ("1m", False),
    ],
)
def test_a_delay_within_the_limits_is_usable(present: str | None, usable: bool) -> None:
    assert is_usable(present, SHORTEST, LONGEST) is usable


def test_only_relevant_fields_of_a_node_are_cached() -> None:
    labels = {"worker.gardener.cloud/gardener-node-agent-secret-name": "osc"}
    delay = {"node-agent.gardener.cloud/reconciliation-delay": "5s"}
    seen = keep_node({"metadata": {"labels": labels, "annotations": delay}})
    assert (seen.secret, seen.delay) == ("osc", "5s")
    assert keep_node({"metadata": {}}).delay is None
    serial = {"reconciliation.osc.node-agent.gardener.cloud/serial": "true"}
    assert keep_secret({"metadata": {"annotations": serial}})
    assert not keep_secret({"metadata": {"annotations": dict.fromkeys(serial, "false")}})


# The waiting time of Nodes


class Nodes:
    """A client with Nodes, which records annotated ones."""

    def __init__(self) -> None:
        self.version = 0
        self.written: list[str] = []
        self.cache = Cache(cast("Client", self), NODE, keep_node)

    def put(self, name: str, **annotations: str) -> JsonObject:
        """Store a Node, and return it."""
        self.version += 1
        metadata = {"name": name, "resourceVersion": f"{self.version}", "annotations": annotations}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
        self.cache.observe(node)
        return node

    async def patch(self, gvk: GroupVersionKind, key: Key, body: JsonObject) -> JsonObject:
        """Patch a Node like the API server."""
        self.written.append(key.name)
        return self.put(key.name, **body["metadata"]["annotations"])


@pytest.mark.looptime(start=0)
@pytest.mark.parametrize(("every", "moved_after"), [(60.0, 5.0), (3.0, 60.0)])
async def test_delays_are_updated_when_no_node_joined_for_a_while_or_after_a_minute(
    every: float, moved_after: float
) -> None:
    nodes = Nodes()
    secrets = Cache(cast("Client", nodes), NODE, keep_secret)
    reconciler = NodeAgentReconciliationDelay(
        cast("Client", nodes), nodes.cache, secrets, Settings(SHORTEST, LONGEST)
    )
    nodes.put("node-z")

    def on_node(change: Change[SeenNode]) -> None:
        reconciler.concerns(change)

    nodes.cache.subscribe(on_node)
    await reconciler.reconcile("nodes")
    loop = asyncio.get_running_loop()
    began, joined = loop.time(), 0
    nodes.written.clear()
    while "node-z" not in nodes.written:
        if loop.time() - began >= joined * every:
            nodes.put(f"node-{joined:03}")
            joined += 1
        await reconciler.reconcile("nodes")
        await asyncio.sleep(0.5)
    assert loop.time() - began - 0.5 == moved_after
    assert sorted(set(nodes.written) - {"node-z"}) == [f"node-{n:03}" for n in range(joined)]
