"""Nodes on a real API server lose the taint once everything critical runs: spec 11 §5.4."""

import asyncio
import secrets
from collections.abc import Sequence

import pytest

from pergola.api.kinds import CSI_NODE, DAEMON_SET, EVENT, NODE, POD
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at, uid_of
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.resource_manager.controllers.node_critical_components import (
    Settings,
    node_critical_components,
)
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.sandbox import Sandbox
from pergola.testing.waiting import PATIENCE, running, settled, until
from pergola.testing.world import RecordingClient

KEY = "node.gardener.cloud/critical-components-not-ready"
CRITICAL = {"node.gardener.cloud/critical-component": "true"}
TAINT = {"key": KEY, "effect": "NoSchedule"}
CONTAINER = {"name": "c", "image": "registry.example/c:1"}
FOREVER = 3600.0
SUCCEEDED = (
    "controller_runtime_reconcile_total",
    {"controller": "node-critical-components", "result": "success"},
)


def unit(
    client: Client, namespace: str, backoff: float = FOREVER, metrics: Metrics | None = None
) -> Unit:
    """Return the controller, which only events trigger by default."""
    settings = Settings(backoff=backoff, critical_namespaces=(namespace,))
    return node_critical_components(client, settings, metrics=metrics or Metrics())


async def put_node(client: Client, *taints: JsonObject, labels: JsonObject | None = None) -> Key:
    """Create a Node with these taints; by default, only with ours."""
    name = f"node-{secrets.token_hex(4)}"
    spec = {"taints": [*taints] or [TAINT]}
    metadata = {"name": name, "labels": labels or {}}
    await client.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec})
    return Key("", name)


async def put_daemon_set(
    client: Client,
    namespace: str,
    name: str = "critical",
    *,
    label: str = "true",
    **pod_spec: object,
) -> JsonObject:
    """Create a node-critical DaemonSet that tolerates all taints."""
    labels = {"app": name, **(dict.fromkeys(CRITICAL, label) if label else {})}
    spec = {"tolerations": [{"operator": "Exists"}], "containers": [CONTAINER], **pod_spec}
    return await client.create(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": name, "namespace": namespace, "labels": CRITICAL},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }
    )


async def put_pod(
    client: Client,
    namespace: str,
    node: Key,
    owner: JsonObject | None = None,
    *,
    name: str = "pod",
    **metadata: object,
) -> Key:
    """Create an unready node-critical Pod on a Node, as the controller of a DaemonSet does."""
    controller = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": "critical",
        "uid": uid_of(owner or {}),
        "controller": True,
    }
    owners = {"ownerReferences": [controller]} if owner else {}
    await client.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": CRITICAL,
                **owners,
                **metadata,
            },
            "spec": {
                "nodeName": node.name,
                "containers": [CONTAINER],
                "tolerations": [{"operator": "Exists"}],
            },
        }
    )
    return Key(namespace, name)


async def set_status(client: Client, pod: Key, ready: str, phase: str = "Running") -> None:
    """Write a status as a kubelet would report it."""
    conditions = [{"type": "Ready", "status": ready}]
    status = {"phase": phase, "conditions": conditions}
    await client.patch(POD, pod, {"status": status}, subresource="status")


def taints_of(node: JsonObject) -> list[JsonObject]:
    """Return a Node's taints, without the one that the API server sets on unready Nodes."""
    taints = maps_at(node, "spec", "taints")
    return [taint for taint in taints if taint["key"] != "node.kubernetes.io/not-ready"]


def is_free(node: JsonObject) -> bool:
    """Return whether the taint is gone."""
    return KEY not in [taint["key"] for taint in taints_of(node)]


async def stays_tainted(working: Unit, client: Client, node: Key) -> bool:
    """Return whether a Node still has the taint once the controller is idle."""
    await settled(working, client)
    return not is_free(await client.get(NODE, node))


async def events_of(client: Client, about: Key, count: int = 1) -> list[JsonObject]:
    """Wait for this many Events about an object, and return them, oldest first."""
    where, fields = about.namespace or "default", f"regarding.name={about.name}"
    async with asyncio.timeout(PATIENCE):
        while len(found := await client.list(EVENT, where, fields=fields)) < count:
            await client.get_raw("/version")
    return sorted(found, key=lambda event: str(event["eventTime"]))


def reported(events: Sequence[JsonObject]) -> list[tuple[str, str, str]]:
    """Return type, reason and note of each Event."""
    return [(event["type"], event["reason"], event["note"]) for event in events]


def patched(recorder: RecordingClient) -> list[str]:
    """Return the writes since the last call, except for Events."""
    return [write for write in recorder.taken() if " Event " not in write]


# 1


async def test_without_critical_components_only_our_taint_is_removed_at_once(
    lone_client: Client, recorder: RecordingClient, fresh: str
) -> None:
    first = {"key": "a", "value": "b", "effect": "NoSchedule"}
    last = {"key": "c", "effect": "PreferNoSchedule"}
    node = await put_node(lone_client, first, TAINT, {**TAINT, "effect": "NoExecute"}, last)
    async with running(working := unit(recorder, fresh)):
        free = await until(lone_client, NODE, node, is_free)
        assert taints_of(free) == [first, last]
        (event,) = await events_of(lone_client, node)
        await settled(working, lone_client)
        assert patched(recorder) == [f"patch Node {node}"]
    note = "All node-critical components got ready, removing taint"
    assert reported([event]) == [("Normal", "NodeCriticalComponentsReady", note)]
    assert event["reportingController"] == "node-critical-components-controller"
    assert event["action"] == "Reconcile"
    assert event["regarding"]["uid"] == uid_of(free)


async def test_a_node_without_the_taint_is_left_alone(
    lone_client: Client, recorder: RecordingClient, fresh: str
) -> None:
    await put_node(lone_client, {"key": "a", "effect": "NoSchedule"})
    async with running(working := unit(recorder, fresh)):
        await settled(working, lone_client)
        assert recorder.taken() == []


# 2


async def test_the_pod_of_a_daemon_set_is_awaited_until_it_is_ready(
    lone_client: Client, recorder: RecordingClient, fresh: str
) -> None:
    node = await put_node(lone_client)
    daemon_set = await put_daemon_set(lone_client, fresh)
    async with running(working := unit(recorder, fresh)):
        assert await stays_tainted(working, lone_client, node)
        (event,) = await events_of(lone_client, node)
        note = (
            f"Node-critical DaemonSets found that were not scheduled to Node yet: {fresh}/critical"
        )
        assert reported([event]) == [("Warning", "UnscheduledNodeCriticalDaemonSets", note)]
        pod = await put_pod(lone_client, fresh, node, daemon_set)
        assert await stays_tainted(working, lone_client, node)
        await set_status(lone_client, pod, "False")
        assert await stays_tainted(working, lone_client, node)
        await set_status(lone_client, pod, "True")
        await until(lone_client, NODE, node, is_free)
        await settled(working, lone_client)
        assert patched(recorder) == [f"patch Node {node}"]


# 3


@pytest.mark.parametrize(
    "changes",
    [{"nodeSelector": {"zone": "b"}}, {"label": "false"}, {"label": ""}],
    ids=["another zone", "label false", "label only on metadata"],
)
async def test_a_daemon_set_for_other_nodes_is_ignored(
    lone_client: Client, recorder: RecordingClient, fresh: str, changes: dict[str, str]
) -> None:
    await put_daemon_set(lone_client, fresh, **changes)
    node = await put_node(lone_client, labels={"zone": "a"})
    async with running(unit(recorder, fresh)):
        await until(lone_client, NODE, node, is_free)


# 4


async def test_a_bare_pod_on_the_node_is_awaited(
    lone_client: Client, recorder: RecordingClient, fresh: str
) -> None:
    node = await put_node(lone_client)
    pod = await put_pod(lone_client, fresh, node)
    async with running(working := unit(recorder, fresh)):
        assert await stays_tainted(working, lone_client, node)
        (event,) = await events_of(lone_client, node)
        note = f"Unready node-critical Pods found on Node: {fresh}/pod"
        assert reported([event]) == [("Warning", "UnreadyNodeCriticalPods", note)]
        await set_status(lone_client, pod, "True")
        await until(lone_client, NODE, node, is_free)


async def test_pods_of_other_nodes_and_namespaces_are_ignored(
    lone_client: Client, recorder: RecordingClient, fresh: str, other: str
) -> None:
    node = await put_node(lone_client)
    waiting = await put_node(lone_client)
    await put_pod(lone_client, fresh, waiting)
    await put_pod(lone_client, other, node)
    await put_daemon_set(lone_client, other)
    async with running(working := unit(recorder, fresh)):
        await until(lone_client, NODE, node, is_free)
        assert await stays_tainted(working, lone_client, waiting)


# 5


async def test_the_drivers_that_pods_name_are_awaited(
    lone_client: Client, recorder: RecordingClient, fresh: str
) -> None:
    driver = "foo.driver.example.com"
    node = await put_node(lone_client)
    for number in ("1", "2"):
        annotations = {f"node.gardener.cloud/wait-for-csi-node-{number}": driver}
        pod = await put_pod(lone_client, fresh, node, name=f"pod-{number}", annotations=annotations)
        await set_status(lone_client, pod, "True")
    async with running(working := unit(recorder, fresh)):
        assert await stays_tainted(working, lone_client, node)
        (event,) = await events_of(lone_client, node)
        note = f"Unready required CSI drivers for Node: [{driver}]"
        assert reported([event]) == [("Warning", "UnreadyRequiredCSIDrivers", note)]
        csi_node = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": node.name},
            "spec": {"drivers": []},
        }
        await lone_client.create(csi_node)
        assert await stays_tainted(working, lone_client, node)
        drivers = [{"name": driver, "nodeID": node.name, "topologyKeys": []}]
        await lone_client.patch(CSI_NODE, node, {"spec": {"drivers": drivers}})
        await until(lone_client, NODE, node, is_free)


# 6


async def test_a_taint_that_others_removed_causes_no_write(
    lone_client: Client, recorder: RecordingClient, fresh: str
) -> None:
    node = await put_node(lone_client)
    await put_pod(lone_client, fresh, node)
    metrics = Metrics()
    async with running(working := unit(recorder, fresh, 0.05, metrics)):
        assert await stays_tainted(working, lone_client, node)
        await lone_client.patch(NODE, node, {"spec": {"taints": None}})
        async with asyncio.timeout(PATIENCE):
            while not metrics.registry.get_sample_value(*SUCCEEDED):
                await lone_client.get_raw("/version")
        assert patched(recorder) == []


# 7


class Interrupted(RecordingClient):
    """A client before whose first patch of a Node another client adds a taint."""

    admin: Client
    added: JsonObject | None = None

    async def patch(
        self,
        gvk: GroupVersionKind,
        key: Key,
        body: JsonObject | Sequence[JsonObject],
        *,
        subresource: str = "",
        manager: str = "",
    ) -> JsonObject:
        """Let the other client write first."""
        if gvk == NODE and self.added is None:
            self.added = {"key": "added", "effect": "NoExecute"}
            node = await self.admin.get(NODE, key)
            taints = [self.added, *node["spec"]["taints"]]
            await self.admin.patch(NODE, key, {"spec": {"taints": taints}})
        return await super().patch(gvk, key, body, subresource=subresource, manager=manager)


async def test_concurrently_added_taints_are_not_lost(
    lone_client: Client, lone_sandbox: Sandbox, fresh: str
) -> None:
    node = await put_node(lone_client)
    async with Interrupted.connect(load(lone_sandbox.kubeconfig)) as client:
        client.admin = lone_client
        async with running(unit(client, fresh)):
            free = await until(lone_client, NODE, node, is_free)
    assert taints_of(free) == [client.added]


# 8


async def test_a_taint_that_reappears_is_removed_again_and_never_added(
    lone_client: Client, recorder: RecordingClient, fresh: str
) -> None:
    node = await put_node(lone_client)
    async with running(working := unit(recorder, fresh)):
        await until(lone_client, NODE, node, is_free)
        pod = await put_pod(lone_client, fresh, node)
        await settled(working, lone_client)
        assert is_free(await lone_client.get(NODE, node))
        await lone_client.patch(NODE, node, {"spec": {"taints": [TAINT]}})
        assert await stays_tainted(working, lone_client, node)
        await set_status(lone_client, pod, "True")
        await until(lone_client, NODE, node, is_free)
        await settled(working, lone_client)
        assert patched(recorder) == [f"patch Node {node}"] * 2


# Beyond


async def test_everything_that_a_node_waits_for_is_reported_once_per_backoff(
    lone_client: Client, recorder: RecordingClient, fresh: str
) -> None:
    node = await put_node(lone_client)
    await put_daemon_set(lone_client, fresh)
    annotations = {"node.gardener.cloud/wait-for-csi-node-x": "driver"}
    pod = await put_pod(lone_client, fresh, node, annotations=annotations)
    async with running(working := unit(recorder, fresh)):
        events = await events_of(lone_client, node, count=3)
        assert [event["reason"] for event in events] == [
            "UnscheduledNodeCriticalDaemonSets",
            "UnreadyNodeCriticalPods",
            "UnreadyRequiredCSIDrivers",
        ]
        await set_status(lone_client, pod, "True")
        await put_pod(lone_client, fresh, node, name="further")
        assert await stays_tainted(working, lone_client, node)
        assert len(await events_of(lone_client, node)) == 3


async def test_a_completed_pod_is_not_awaited(
    lone_client: Client, recorder: RecordingClient, fresh: str
) -> None:
    node = await put_node(lone_client)
    pod = await put_pod(lone_client, fresh, node)
    await set_status(lone_client, pod, "False", phase="Succeeded")
    async with running(unit(recorder, fresh)):
        await until(lone_client, NODE, node, is_free)


async def test_a_terminating_pod_is_not_awaited_if_its_daemon_set_has_another(
    lone_client: Client, recorder: RecordingClient, fresh: str
) -> None:
    node = await put_node(lone_client)
    daemon_set = await put_daemon_set(lone_client, fresh)
    going = await put_pod(lone_client, fresh, node, daemon_set, name="going")
    await lone_client.delete(POD, going)
    async with running(working := unit(recorder, fresh)):
        assert await stays_tainted(working, lone_client, node)
        pod = await put_pod(lone_client, fresh, node, daemon_set, name="new")
        await set_status(lone_client, pod, "True")
        await until(lone_client, NODE, node, is_free)
    assert map_at(await lone_client.get(POD, going), "metadata")["deletionTimestamp"]


async def test_a_daemon_set_without_the_toleration_is_reported(
    lone_client: Client, recorder: RecordingClient, fresh: str
) -> None:
    await put_daemon_set(lone_client, fresh, tolerations=[])
    node = await put_node(lone_client)
    async with running(unit(recorder, fresh)):
        await until(lone_client, NODE, node, is_free)
        (event,) = await events_of(lone_client, Key(fresh, "critical"))
    assert (event["type"], event["reason"]) == ("Warning", "NodeCriticalDaemonSetLacksToleration")
    assert f'Add the toleration {{key: "{KEY}"' in event["note"]


async def test_a_deleted_daemon_set_is_not_awaited(
    lone_client: Client, recorder: RecordingClient, fresh: str
) -> None:
    node = await put_node(lone_client)
    await put_daemon_set(lone_client, fresh)
    async with running(working := unit(recorder, fresh)):
        assert await stays_tainted(working, lone_client, node)
        await lone_client.delete(DAEMON_SET, Key(fresh, "critical"))
        await until(lone_client, NODE, node, is_free)
