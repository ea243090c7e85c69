"""DaemonSets on nodes that are preserved although they are broken (spec 10 appendix A)."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.health import check_daemon_set_preserved

Damage = Callable[[st.DataObject, Sequence[JsonObject]], JsonObject]


def daemon_set(unavailable: int, **status: int) -> JsonObject:
    counts = dict.fromkeys(
        ["desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled"], 3
    )
    return {
        "metadata": {"name": "agent", "namespace": "kube-system", "uid": "own", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}},
        "status": {"observedGeneration": 1, "numberUnavailable": unavailable} | counts | status,
    }


def node(name: str = "kept", preserved: str | None = "True", ready: str | None = "False") -> Any:
    found = {"Preserved": preserved, "Ready": ready}
    conditions = [{"type": k, "status": v} for k, v in found.items() if v is not None]
    return {"metadata": {"name": name}, "status": {"conditions": conditions}}


def pod(on: str = "kept", ready: str | None = "False", **metadata: Any) -> JsonObject:
    owner = {"kind": "DaemonSet", "name": "agent", "uid": "own", "controller": True}
    conditions = [] if ready is None else [{"type": "Ready", "status": ready}]
    own = {"namespace": "kube-system", "labels": {"app": "agent"}, "ownerReferences": [owner]}
    return {
        "metadata": own | metadata,
        "spec": {"nodeName": on},
        "status": {"conditions": conditions},
    }


@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_an_unready_pod_on_a_broken_preserved_node_is_tolerated(ready: str) -> None:
    assert check_daemon_set_preserved(daemon_set(1), [node(ready=ready)], [pod()]) is None


@pytest.mark.parametrize("ready", ["False", "Unknown", None])
def test_every_kind_of_unready_pod_is_tolerated_on_such_a_node(ready: str | None) -> None:
    assert check_daemon_set_preserved(daemon_set(1), [node()], [pod(ready=ready)]) is None


@pytest.mark.parametrize(
    ("broken", "unready"),
    [
        (node(preserved="False"), pod()),
        (node(preserved=None), pod()),
        (node(ready="True"), pod()),
        (node(ready=None), pod()),
        (node(), pod(ready="True")),
        (node(), pod("elsewhere")),
        (node(), pod(namespace="other")),
        (node(), pod(ownerReferences=[{"kind": "Job", "uid": "else", "controller": True}])),
        (node(), pod(ownerReferences=[], labels={"app": "else"})),
    ],
)
def test_other_unready_pods_are_not_tolerated(broken: JsonObject, unready: JsonObject) -> None:
    problem = check_daemon_set_preserved(daemon_set(1), [broken], [unready])

    assert problem == "1 of 3 pods are unavailable, at most 0 may be"


def test_a_pod_without_a_controller_is_matched_by_its_labels() -> None:
    orphan = pod(ownerReferences=[])

    assert check_daemon_set_preserved(daemon_set(1), [node()], [orphan]) is None


def test_only_the_number_of_unready_pods_on_such_nodes_is_tolerated() -> None:
    nodes, pods = [node("a"), node("b")], [pod("a"), pod("b")]

    assert check_daemon_set_preserved(daemon_set(2), nodes, pods) is None
    assert check_daemon_set_preserved(daemon_set(3), nodes, pods) is not None
    assert check_daemon_set_preserved(daemon_set(0), nodes, pods) is None


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"observedGeneration": 0}, "observed generation 0 is behind generation 1"),
        ({"currentNumberScheduled": 2}, "2 of 3 pods are scheduled"),
        ({"numberMisscheduled": 1}, "1 pods run on nodes where they should not"),
    ],
)
def test_the_other_rules_of_daemon_sets_still_apply(status: dict[str, int], words: str) -> None:
    assert check_daemon_set_preserved(daemon_set(1, **status), [node()], [pod()]) == words


@given(st.data())
def test_malformed_objects_never_raise(damage: Damage, data: st.DataObject) -> None:
    nodes = [damage(data, [node()]), node()]
    pods = [damage(data, [pod(), pod(ownerReferences=[])]), pod()]
    for one in (daemon_set(1), damage(data, [daemon_set(1)])):
        assert check_daemon_set_preserved(one, nodes, pods) != ""
