"""The pods that count for a Deployment, and the rule about their number (spec 10 §9, B17)."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.conditions import timestamp
from pergola.api.kinds import DEPLOYMENT, STATEFUL_SET
from pergola.api.marks import SKIP_HEALTH_CHECK
from pergola.api.objects import GroupVersionKind, JsonObject, name_of
from pergola.health import (
    check_deployment_updated,
    is_relevant,
    needs_pod_count,
    pods_of,
    pods_problem,
)
from pergola.health.pods import STALE_AFTER

Damage = Callable[[st.DataObject, Sequence[JsonObject]], JsonObject]

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def deployment(replicas: int | None = 1, selector: object = None, **metadata: Any) -> JsonObject:
    conditions = [
        {"type": "Available", "status": "True"},
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
    ]
    spec = {} if replicas is None else {"replicas": replicas}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "generation": 3} | metadata,
        "spec": spec | {"selector": selector or {"matchLabels": {"app": "web"}}},
        "status": {"observedGeneration": 3, "conditions": conditions},
    }


def pod(
    name: str = "pod", *, labels: JsonObject | None = None, owner: object = None, **rest: Any
) -> JsonObject:
    metadata: JsonObject = {
        "name": name,
        "namespace": rest.pop("namespace", "shop"),
        "labels": {"app": "web"} | (labels or {}),
        "deletionTimestamp": rest.pop("deleted", None),
    }
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    return {"metadata": metadata, "status": {"phase": "Running"} | rest}


def replica_set(name: str) -> JsonObject:
    return {"kind": "ReplicaSet", "name": name, "uid": f"uid-of-{name}", "controller": True}


def made_by(owner: str, template_hash: str) -> JsonObject:
    labels = {"pod-template-hash": template_hash}
    return pod(labels=labels, owner=replica_set(f"{owner}-{template_hash}"))


# Must hold


def test_an_additional_live_pod_is_a_rollout_until_it_is_gone() -> None:
    assert pods_problem(deployment(1), [pod(), pod()]) == "there are 2 pods, expected 1"
    assert pods_problem(deployment(1), [pod()]) is None


@pytest.mark.parametrize(
    "status",
    [
        {"phase": "Failed"},
        {"phase": "Succeeded"},
        {"reason": "Evicted"},
        {"reason": "PodEvicted"},
        {"reason": "NodeAffinity"},
        {"reason": "NodeLost"},
        {"reason": "Preempting"},
        {"reason": "OutOfcpu"},
        {"conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted"}]},
        {"conditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ],
)
def test_a_leftover_pod_does_not_count(status: JsonObject) -> None:
    leftover = pod(**status)

    assert not is_relevant(leftover)
    assert pods_problem(deployment(1), [pod(), leftover]) is None


@pytest.mark.parametrize(
    "status",
    [
        {"phase": "Pending"},
        {"phase": None},
        {"reason": "RunOutOfcpu"},
        {"conditions": [{"type": "Ready", "status": "True", "reason": "PodCompleted"}]},
        {"conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}]},
        {"conditions": [{"type": "DisruptionTarget", "status": "False"}]},
    ],
)
def test_any_other_pod_counts(status: JsonObject) -> None:
    assert is_relevant(pod(**status))
    assert pods_problem(deployment(1), [pod(), pod(**status)]) == "there are 2 pods, expected 1"


# The number


@pytest.mark.parametrize(
    ("replicas", "pods", "problem"),
    [
        (3, 2, "there are 2 pods, expected 3"),
        (None, 1, None),
        (None, 0, "there are 0 pods, expected 1"),
        (0, 0, None),
        (0, 1, "there are 1 pods, expected 0"),
    ],
)
def test_the_number_of_pods_must_equal_the_replicas(
    replicas: int | None, pods: int, problem: str | None
) -> None:
    assert pods_problem(deployment(replicas), [pod() for _ in range(pods)]) == problem


def test_a_skipped_deployment_has_no_pod_problem() -> None:
    skipped = deployment(1, annotations={SKIP_HEALTH_CHECK: "true"})

    assert pods_problem(skipped, []) is None


@pytest.mark.parametrize(
    ("gvk", "needed"),
    [
        (DEPLOYMENT, True),
        (STATEFUL_SET, False),
        (GroupVersionKind("example.org", "v1", "Deployment"), False),
    ],
)
def test_only_the_pods_of_deployments_are_counted(gvk: GroupVersionKind, needed: bool) -> None:
    assert needs_pod_count(gvk) is needed


# Counted pods


def test_pods_of_another_namespace_or_with_other_labels_do_not_count() -> None:
    others = [pod("b", namespace="other"), pod("c", labels={"app": "db"})]

    assert [name_of(p) for p in pods_of(deployment(), [pod("a"), *others])] == ["a"]


def test_all_parts_of_the_selector_must_match() -> None:
    expression = {"key": "tier", "operator": "NotIn", "values": ["canary"]}
    picky = {"matchLabels": {"app": "web"}, "matchExpressions": [expression]}

    counted = pods_of(deployment(1, picky), [pod("a"), pod("b", labels={"tier": "canary"})])

    assert [name_of(p) for p in counted] == ["a"]


def test_an_empty_selector_matches_no_pods() -> None:
    empty = deployment(1, {"matchLabels": {}})

    assert list(pods_of(empty, [pod()])) == []
    assert pods_problem(empty, []) is None


def test_an_invalid_selector_is_reported() -> None:
    broken = {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["w"]}]}

    problem = pods_problem(deployment(1, broken), [pod()]) or ""

    assert problem.startswith("spec.selector: matchExpressions")


def test_pods_of_old_and_new_replica_sets_count() -> None:
    pods = [made_by("web", "7d4b9"), made_by("web", "6c8f5")]

    assert pods_problem(deployment(1), pods) == "there are 2 pods, expected 1"


@pytest.mark.parametrize(
    "foreign",
    [
        made_by("web-canary", "7d4b9"),
        made_by("other", "7d4b9"),
        pod(owner={"kind": "StatefulSet", "name": "web", "uid": "u", "controller": True}),
        pod(owner={"kind": "Job", "name": "web", "uid": "u", "controller": True}),
    ],
)
def test_pods_of_another_controller_do_not_count(foreign: JsonObject) -> None:
    assert pods_problem(deployment(1), [made_by("web", "6c8f5"), foreign]) is None


@pytest.mark.parametrize(
    "own",
    [
        pod(),
        pod(owner=replica_set("adopted")),
        pod(owner=replica_set("adopted"), labels={"pod-template-hash": "7d4b9"}),
        pod(owner={"kind": "Lease", "name": "x", "uid": "u", "controller": False}),
        pod(owner={"kind": "Lease", "name": "x", "uid": "u"}),
    ],
)
def test_orphans_and_pods_of_an_adopted_replica_set_count(own: JsonObject) -> None:
    assert pods_problem(deployment(1), [made_by("web", "6c8f5"), own]) is not None


def test_a_terminating_pod_counts_until_it_is_long_overdue() -> None:
    due = pod(deleted=timestamp(NOW))

    def problem(now: datetime | None) -> str | None:
        return pods_problem(deployment(1), [pod(), due], now=now)

    assert problem(NOW - timedelta(seconds=30)) is not None
    assert problem(NOW + STALE_AFTER) is not None
    assert problem(NOW + STALE_AFTER + timedelta(seconds=1)) is None
    assert problem(None) is not None


# Appendix A: the wait for an update


def test_an_update_is_done_when_it_is_rolled_out_healthy_and_the_old_pods_are_gone() -> None:
    updated = deployment(1)

    assert check_deployment_updated(updated, [pod()]) is None
    assert check_deployment_updated(updated, [pod(), pod()]) == "there are 2 pods, expected 1"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"observedGeneration": 2}, "observed generation 2 is behind generation 3"),
        ({"conditions": [{"type": "Available", "status": "True"}]}, "Progressing is missing"),
        (
            {
                "conditions": [
                    {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}
                ]
            },
            "Available is missing",
        ),
    ],
)
def test_an_update_is_not_done_before_rollout_and_health(status: JsonObject, words: str) -> None:
    updating = deployment(1)
    updating["status"] |= status

    assert words in (check_deployment_updated(updating, [pod()]) or "")


def test_the_wait_for_an_update_heeds_deployments_that_are_skipped_elsewhere() -> None:
    skipped = deployment(1, annotations={SKIP_HEALTH_CHECK: "true"})

    assert check_deployment_updated(skipped, []) == "there are 0 pods, expected 1"


EXPRESSION = {"key": "app", "operator": "In", "values": ["web"]}
DEPLOYMENTS = [deployment(), deployment(1, {"matchExpressions": [EXPRESSION]})]
PODS = [
    made_by("web", "7d4b9"),
    pod(deleted=timestamp(NOW), reason="Evicted"),
    pod(conditions=[{"type": "Ready", "status": "False", "reason": "PodCompleted"}]),
]


@given(st.data())
def test_malformed_deployments_and_pods_never_raise(damage: Damage, data: st.DataObject) -> None:
    pods = [damage(data, PODS), *PODS]
    for one in (*DEPLOYMENTS, damage(data, DEPLOYMENTS)):
        assert pods_problem(one, pods, now=NOW) != ""
        assert check_deployment_updated(one, pods, now=NOW) != ""
