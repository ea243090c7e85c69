"""The components that a Node waits for, decided from cached facts: spec 11 §5.3, and Beyond."""

from dataclasses import replace

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.resource_manager.controllers.node_critical_components.checks import (
    Problem,
    check,
    counting_pods,
    without_taint,
)
from pergola.resource_manager.controllers.node_critical_components.seen import (
    CRITICAL,
    TAINT,
    SeenDaemonSet,
    SeenPod,
    keep_csi_node,
    keep_daemon_set,
    keep_node,
    keep_pod,
)

OURS = {"key": TAINT, "effect": "NoSchedule"}
NODE = keep_node({"metadata": {"labels": {"zone": "a"}}, "spec": {"taints": [OURS]}})
TOLERANT = [{"key": TAINT, "operator": "Exists"}]


def daemon_set(uid: str = "d", label: str = "true", **pod_spec: object) -> SeenDaemonSet:
    """Return a DaemonSet as cached; by default it tolerates our taint."""
    template = {
        "metadata": {"labels": {CRITICAL: label}},
        "spec": {"tolerations": TOLERANT, **pod_spec},
    }
    return keep_daemon_set({"metadata": {"uid": uid}, "spec": {"template": template}})


def pod(daemon_set: str = "d", **changes: object) -> SeenPod:
    """Return a Pod as cached, by default ready."""
    seen = SeenPod(
        node="n",
        daemon_set=daemon_set,
        ready=True,
        completed=False,
        deleting=False,
        drivers=frozenset(),
    )
    return replace(seen, **changes)  # type: ignore[arg-type]


def key(name: str) -> Key:
    """Return a key in kube-system."""
    return Key("kube-system", name)


def problems(
    daemon_sets: dict[Key, SeenDaemonSet], pods: dict[Key, SeenPod], *drivers: str
) -> list[Problem]:
    """Return the problems that the checks find on the Node."""
    return check("n", NODE, daemon_sets.items(), pods, drivers).problems


def test_a_node_waits_for_nothing_without_critical_components() -> None:
    assert problems({}, {}) == []


def test_all_failing_checks_are_reported_in_order() -> None:
    daemon_sets = {key("b"): daemon_set("b"), key("a"): daemon_set("a"), key("c"): daemon_set("c")}
    pods = {
        key("y"): pod("c", ready=False, drivers=frozenset({"two", "one", "three"})),
        key("x"): pod("", ready=False, drivers=frozenset({"one"})),
    }
    assert problems(daemon_sets, pods, "three") == [
        Problem(
            "UnscheduledNodeCriticalDaemonSets",
            "Node-critical DaemonSets found that were not scheduled to Node yet: "
            "kube-system/a, kube-system/b",
        ),
        Problem(
            "UnreadyNodeCriticalPods",
            "Unready node-critical Pods found on Node: kube-system/x, kube-system/y",
        ),
        Problem("UnreadyRequiredCSIDrivers", "Unready required CSI drivers for Node: [one, two]"),
    ]


@pytest.mark.parametrize(
    ("desired", "waits"),
    [
        (daemon_set(), True),
        (daemon_set(label="false"), False),
        (daemon_set(nodeSelector={"zone": "b"}), False),
        (daemon_set(nodeSelector={"zone": "a"}), True),
        (daemon_set(tolerations=[]), False),
        (keep_daemon_set({"metadata": {"uid": "d", "labels": {CRITICAL: "true"}}}), False),
    ],
)
def test_a_node_waits_for_critical_daemon_sets(desired: SeenDaemonSet, waits: bool) -> None:
    assert bool(problems({key("ds"): desired}, {})) is waits
    assert problems({key("ds"): desired}, {key("p"): pod()}) == []


def test_a_node_does_not_wait_for_a_daemon_set_in_deletion() -> None:
    going = {"metadata": {"uid": "d", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    template = {"metadata": {"labels": {CRITICAL: "true"}}, "spec": {"tolerations": TOLERANT}}
    seen = keep_daemon_set(going | {"spec": {"template": template}})
    assert problems({key("ds"): seen}, {}) == []


def test_a_pod_of_a_former_daemon_set_with_the_same_name_does_not_count() -> None:
    found = problems({key("ds"): daemon_set("new")}, {key("p"): pod("old")})
    assert [problem.reason for problem in found] == ["UnscheduledNodeCriticalDaemonSets"]


@pytest.mark.parametrize(
    ("taints", "named"),
    [
        ([OURS], True),
        ([OURS, {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}], True),
        ([OURS, {"key": "dedicated", "effect": "NoSchedule"}], False),
        ([{**OURS, "effect": "PreferNoSchedule"}], False),
        (
            [
                {**OURS, "effect": "PreferNoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
            ],
            False,
        ),
    ],
)
def test_a_daemon_set_that_does_not_tolerate_our_taint_is_reported(
    taints: list[JsonObject], named: bool
) -> None:
    node = keep_node({"spec": {"taints": taints}})
    found = check("n", node, [(key("ds"), daemon_set(tolerations=[]))], {}, ())
    assert found.intolerant == ([key("ds")] if named else [])


@pytest.mark.parametrize(
    ("pods", "counting"),
    [
        ({"a": pod()}, "a"),
        ({"a": pod(completed=True)}, ""),
        ({"a": pod(""), "b": pod("", completed=True)}, "a"),
        ({"a": pod(deleting=True)}, "a"),
        ({"a": pod("", deleting=True), "b": pod("")}, "ab"),
        ({"a": pod(deleting=True), "b": pod()}, "b"),
        ({"a": pod(deleting=True), "b": pod(ready=False)}, "b"),
        ({"a": pod(deleting=True), "b": pod("other")}, "ab"),
        ({"a": pod(deleting=True), "b": pod(completed=True)}, "a"),
        ({"a": pod(deleting=True), "b": pod(deleting=True)}, "ab"),
    ],
)
def test_a_node_waits_for_critical_pods(pods: dict[str, SeenPod], counting: str) -> None:
    seen = {key(name): pod for name, pod in pods.items()}
    assert {k.name for k in counting_pods(seen)} == set(counting)


def test_a_node_waits_until_a_failed_pod_of_a_daemon_set_is_replaced() -> None:
    found = problems({key("ds"): daemon_set()}, {key("p"): pod(completed=True, ready=False)})
    assert [problem.reason for problem in found] == ["UnscheduledNodeCriticalDaemonSets"]


def test_other_taints_are_kept_in_order() -> None:
    first = {"key": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    last = {"key": "b", "value": "c", "effect": "NoSchedule"}
    evicting = {"key": TAINT, "value": "x", "effect": "NoExecute"}
    assert without_taint([first, OURS, last, evicting]) == [first, last]


# Cached facts


@pytest.mark.parametrize(
    ("taints", "tainted"),
    [
        ([OURS], True),
        ([{"key": TAINT, "value": "any", "effect": "PreferNoSchedule"}], True),
        ([{"key": f"{TAINT}-2", "effect": "NoSchedule"}], False),
        ([], False),
        (None, False),
    ],
)
def test_a_taint_is_recognized_by_its_key(taints: list[JsonObject] | None, tainted: bool) -> None:
    node = keep_node({"metadata": {"labels": {"a": "b"}}, "spec": {"taints": taints}})
    assert node.is_tainted is tainted
    assert node.labels == ({"a": "b"} if tainted else {})


def test_only_relevant_fields_of_a_pod_are_cached() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "uid": "d", "controller": True}
    seen = keep_pod(
        {
            "metadata": {
                "annotations": {
                    "node.gardener.cloud/wait-for-csi-node-x": "one",
                    "node.gardener.cloud/wait-for-csi-node-y": "one",
                    "node.gardener.cloud/wait-for-csi-node-": "two",
                    "other": "three",
                },
                "ownerReferences": [{**owner, "uid": "no", "controller": False}, owner],
                "deletionTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"nodeName": "n"},
            "status": {"phase": "Failed", "conditions": [{"type": "Ready", "status": "True"}]},
        }
    )
    assert seen == SeenPod("n", "d", True, True, True, frozenset({"one", "two"}))  # noqa: FBT003


@pytest.mark.parametrize(
    "owner",
    [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "uid": "d"},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "uid": "d", "controller": True},
        {"apiVersion": "other/v1", "kind": "DaemonSet", "uid": "d", "controller": True},
    ],
)
def test_only_controlling_daemon_sets_count_as_owners(owner: JsonObject) -> None:
    assert keep_pod({"metadata": {"ownerReferences": [owner]}}).daemon_set == ""


def test_only_driver_names_of_a_csi_node_are_cached() -> None:
    drivers = [{"name": "one", "nodeID": "1"}, {"name": "two"}]
    assert keep_csi_node({"spec": {"drivers": drivers}}) == {"one", "two"}
    assert keep_csi_node({"spec": {"drivers": None}}) == frozenset()
