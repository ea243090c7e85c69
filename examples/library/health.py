"""Whether objects are healthy and rolled out: `pergola.health`."""

from datetime import UTC, datetime, timedelta

from pergola.api import GroupVersionKind, JsonObject
from pergola.health import (
    CareFailure,
    ExtensionFailure,
    Trouble,
    care,
    check,
    check_api_service,
    check_control_plane,
    check_daemon_set_preserved,
    check_deployment_updated,
    check_etcd,
    check_extension,
    check_garden,
    check_machine_deployment,
    check_managed_seed,
    check_node,
    check_ready,
    check_rolled_out,
    check_seed,
    deployment_problem,
    etcd_problem,
    failing_status,
    has_rule,
    is_relevant,
    is_skipped,
    needs_pod_count,
    pod_trouble,
    pods_of,
    pods_problem,
    progressing,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"namespace": "shop", "name": "web", "generation": 2},
    "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}},
    "status": {
        "observedGeneration": 2,
        "conditions": [{"type": "Available", "status": "False", "message": "1 of 2 run"}],
    },
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"namespace": "shop", "name": "web-1", "labels": {"app": "web"}},
    "status": {"phase": "Running"},
}


def any_object() -> None:
    """Check an object of any kind; None means that it is healthy, or that no rule applies."""
    assert has_rule(GroupVersionKind.of(DEPLOYMENT))
    assert "Available" in (check(DEPLOYMENT) or "")
    assert progressing(DEPLOYMENT) is not None
    assert check({"apiVersion": "v1", "kind": "ConfigMap"}) is None
    assert not is_skipped(DEPLOYMENT)
    assert deployment_problem(DEPLOYMENT).endswith("1 of 2 run")


def pods() -> None:
    """Find what is wrong with the pods of a Deployment."""
    waiting = {"name": "web", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    pod = {**POD, "status": {"phase": "Pending", "containerStatuses": [waiting]}}
    trouble = pod_trouble(pod)
    assert isinstance(trouble, Trouble)
    assert trouble.container == "web"
    assert is_relevant(pod)
    assert list(pods_of(DEPLOYMENT, [pod])) == [pod]
    assert needs_pod_count(GroupVersionKind("apps", "v1", "Deployment"))
    assert pods_problem(DEPLOYMENT, [POD], now=NOW) is not None
    assert check_deployment_updated(DEPLOYMENT, [pod], now=NOW) is not None


def managed_resources() -> None:
    """Judge a ManagedResource by its conditions, as those who deploy one do."""
    resource: JsonObject = {"metadata": {"namespace": "shop", "name": "web", "generation": 1}}
    assert check_ready(resource) is not None
    assert check_rolled_out(resource) is not None
    failure = care(resource, now=NOW)
    assert isinstance(failure, CareFailure)
    assert failure.message


def kinds_of_gardener() -> None:
    """Judge objects of Gardener and etcd-druid, which have a rule each."""
    empty: JsonObject = {"metadata": {"namespace": "garden", "name": "x"}}
    for rule in (
        check_api_service,
        check_garden,
        check_machine_deployment,
        check_managed_seed,
        check_node,
    ):
        assert rule(empty) is not None
    assert isinstance(check_extension(empty), ExtensionFailure)
    assert check_seed(empty, {}) is not None
    assert check_etcd(empty) is not None
    assert etcd_problem(empty)
    assert check_daemon_set_preserved(empty, [], []) is None
    failure = check_control_plane(
        {}, {}, required_etcds=["etcd-main"], required_deployments=["kube-apiserver"]
    )
    assert failure is not None


def thresholds() -> None:
    """Call something failing only if it lasts."""
    previous = {"status": "True", "lastTransitionTime": "2025-12-31T00:00:00Z"}
    now = failing_status(previous, "Broken", now=NOW, threshold=timedelta(minutes=5))
    assert now == "Progressing"
