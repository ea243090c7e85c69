"""Each row of the table of spec 10 §8.3, in both directions."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.marks import SKIP_HEALTH_CHECK
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.health import HEALTH_KINDS, check, has_rule

Damage = Callable[[st.DataObject, Sequence[JsonObject]], JsonObject]


def live(api_version: str, kind: str, status: JsonObject, **parts: Any) -> JsonObject:
    metadata = {"name": "it", "namespace": "default", "generation": 3}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata | parts.pop("metadata", {}),
        "spec": parts.pop("spec", {}),
        "status": status,
    }


def conditions(**statuses: str) -> list[JsonObject]:
    return [
        {"type": kind, "status": status, "reason": "Because", "message": "so it is"}
        for kind, status in statuses.items()
    ]


def deployment(observed: int = 3, **statuses: str) -> JsonObject:
    status = {"observedGeneration": observed, "conditions": conditions(**statuses)}
    return live("apps/v1", "Deployment", status)


def stateful_set(ready: int | None, replicas: int | None, observed: int = 3) -> JsonObject:
    status = {"observedGeneration": observed} | ({} if ready is None else {"readyReplicas": ready})
    spec = {} if replicas is None else {"replicas": replicas}
    return live("apps/v1", "StatefulSet", status, spec=spec)


def replica_set(ready: int, replicas: int | None, observed: int = 3) -> JsonObject:
    return stateful_set(ready, replicas, observed) | {"kind": "ReplicaSet"}


def replication_controller(ready: int, replicas: int | None, observed: int = 3) -> JsonObject:
    renamed = {"apiVersion": "v1", "kind": "ReplicationController"}
    return stateful_set(ready, replicas, observed) | renamed


def daemon_set(
    current: int = 10,
    misscheduled: int = 0,
    updated: int = 10,
    unavailable: int = 0,
    limit: object = "20%",
    strategy: str = "RollingUpdate",
    observed: int = 3,
) -> JsonObject:
    status = {
        "observedGeneration": observed,
        "desiredNumberScheduled": 10,
        "currentNumberScheduled": current,
        "numberMisscheduled": misscheduled,
        "updatedNumberScheduled": updated,
        "numberUnavailable": unavailable,
    }
    update = {"type": strategy, "rollingUpdate": {"maxUnavailable": limit}}
    return live("apps/v1", "DaemonSet", status, spec={"updateStrategy": update})


def pod(phase: str | None) -> JsonObject:
    return live("v1", "Pod", {"phase": phase} if phase else {})


def job(**statuses: str) -> JsonObject:
    return live("batch/v1", "Job", {"conditions": conditions(**statuses)})


def service(kind: str, *ingress: JsonObject) -> JsonObject:
    status = {"loadBalancer": {"ingress": list(ingress)} if ingress else {}}
    return live("v1", "Service", status, spec={"type": kind})


def crd(version: str = "v1", **statuses: str) -> JsonObject:
    status = {"conditions": conditions(**statuses)}
    return live(f"apiextensions.k8s.io/{version}", "CustomResourceDefinition", status)


def monitoring(
    kind: str,
    available: int = 2,
    replicas: int | None = 2,
    condition: str | None = "True",
    about: int = 3,
) -> JsonObject:
    found = [] if condition is None else conditions(Available=condition)
    status = {
        "availableReplicas": available,
        "conditions": [c | {"observedGeneration": about} for c in found],
    }
    spec = {} if replicas is None else {"replicas": replicas}
    return live("monitoring.coreos.com/v1", kind, status, spec=spec)


def prometheus(**parts: Any) -> JsonObject:
    return monitoring("Prometheus", **parts)


def alertmanager(**parts: Any) -> JsonObject:
    return monitoring("Alertmanager", **parts)


def autoscaler(**statuses: str) -> JsonObject:
    status = {"observedGeneration": 1, "conditions": conditions(**statuses)}
    return live("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", status)


def certificate(state: str | None, **statuses: str) -> JsonObject:
    status = {"state": state, "conditions": conditions(**statuses)}
    return live("cert.gardener.cloud/v1alpha1", "Certificate", status)


def issuer(state: str | None, **status: str) -> JsonObject:
    return live("cert.gardener.cloud/v1alpha1", "Issuer", {"state": state} | status)


HEALTHY = [
    deployment(Available="True"),
    deployment(4, Available="True"),
    deployment(Available="True", Progressing="True", ReplicaFailure="False"),
    stateful_set(2, 2),
    stateful_set(3, 2),
    stateful_set(1, None),
    stateful_set(None, 0),
    daemon_set(),
    daemon_set(current=11),
    daemon_set(updated=4, unavailable=3, limit=3),
    daemon_set(updated=4, unavailable=2, limit="29%"),
    replica_set(2, 2),
    replica_set(0, None),
    replication_controller(2, 2),
    replication_controller(0, None),
    pod("Running"),
    pod("Succeeded"),
    job(),
    job(Failed="False", Complete="True"),
    service("ClusterIP"),
    service("LoadBalancer", {"ip": "10.0.0.1"}),
    crd(NamesAccepted="True", Established="True"),
    crd("v1beta1", NamesAccepted="True", Established="True", Terminating="False"),
    prometheus(),
    prometheus(available=1, replicas=None),
    prometheus(about=4),
    alertmanager(),
    autoscaler(),
    autoscaler(ConfigUnsupported="False", RecommendationProvided="False"),
    certificate("Ready"),
    certificate("Ready", Ready="True"),
    issuer("Ready"),
]


@pytest.mark.parametrize("obj", HEALTHY)
def test_a_healthy_object_has_no_problem(obj: JsonObject) -> None:
    assert check(obj) is None


BEHIND = "observed generation 2 is behind generation 3"


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (deployment(2, Available="True"), BEHIND),
        (deployment(), "condition Available is missing, expected True"),
        (deployment(Available="False"), "condition Available is False (Because): so it is"),
        (deployment(Available="True", Progressing="False"), "condition Progressing is False"),
        (deployment(Available="True", Progressing="Unknown"), "to be True"),
        (deployment(Available="True", ReplicaFailure="True"), "ReplicaFailure to be False"),
        (stateful_set(2, 2, 2), BEHIND),
        (stateful_set(1, 2), "1 of 2 replicas are ready"),
        (stateful_set(None, None), "0 of 1 replicas are ready"),
        (daemon_set(observed=2), BEHIND),
        (daemon_set(current=9), "9 of 10 pods are scheduled"),
        (daemon_set(misscheduled=1), "1 pods run on nodes where they should not"),
        (daemon_set(updated=4, unavailable=3, limit="29%"), "3 of 10 pods are unavailable"),
        (daemon_set(updated=4, unavailable=1, strategy="OnDelete"), "at most 0 may be"),
        (daemon_set(updated=4, unavailable=1, limit=None), "at most 0 may be"),
        (daemon_set(updated=4, unavailable=1, limit="many"), "at most 0 may be"),
        (replica_set(2, 2, 2), BEHIND),
        (replica_set(1, 2), "1 of 2 replicas are ready"),
        (replication_controller(2, 2, 2), BEHIND),
        (replication_controller(1, 2), "1 of 2 replicas are ready"),
        (pod("Pending"), "phase is Pending"),
        (pod("Failed"), "phase is Failed"),
        (pod(None), "phase is unknown"),
        (job(Failed="True"), "condition Failed is True (Because): so it is"),
        (service("LoadBalancer"), "status.loadBalancer.ingress is empty"),
        (crd(Established="True"), "condition NamesAccepted is missing"),
        (crd(NamesAccepted="True"), "condition Established is missing"),
        (crd(NamesAccepted="False", Established="True"), "NamesAccepted is False"),
        (crd(NamesAccepted="True", Established="False"), "Established is False"),
        (crd("v1beta1", NamesAccepted="True"), "condition Established is missing"),
        (
            crd(NamesAccepted="True", Established="True", Terminating="True"),
            "Terminating to be False",
        ),
        (prometheus(condition=None), "condition Available is missing"),
        (prometheus(condition="False"), "condition Available is False"),
        (prometheus(condition="Degraded"), "condition Available is Degraded"),
        (prometheus(about=2), "condition Available is about generation 2, behind generation 3"),
        (prometheus(available=1), "1 of 2 replicas are available"),
        (prometheus(available=0, replicas=None), "0 of 1 replicas are available"),
        (alertmanager(available=1), "1 of 2 replicas are available"),
        (alertmanager(about=2), "about generation 2"),
        (autoscaler(ConfigUnsupported="True"), "condition ConfigUnsupported is True"),
        (certificate("Ready", Ready="False"), "condition Ready is False"),
        (certificate("Pending"), "state is Pending, expected Ready"),
        (certificate(None, Ready="True"), "state is unknown"),
        (issuer("Error", message="no account"), "state is Error, expected Ready: no account"),
        (issuer(None), "state is unknown, expected Ready"),
    ],
)
def test_the_failure_text_names_the_problem(obj: JsonObject, words: str) -> None:
    assert words in (check(obj) or "")


def test_a_deployment_in_the_middle_of_a_normal_update_is_healthy() -> None:
    updating = deployment(Available="True", Progressing="True")
    updating["spec"]["replicas"] = 3
    updating["status"] |= {"replicas": 4, "updatedReplicas": 1}

    assert check(updating) is None


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("v1", "ConfigMap"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("v1", "PersistentVolumeClaim"),
        ("v1", "Node"),
        ("apiregistration.k8s.io/v1", "APIService"),
        ("policy/v1", "PodDisruptionBudget"),
        ("batch/v1", "CronJob"),
        ("networking.k8s.io/v1", "Ingress"),
        ("resources.gardener.cloud/v1alpha1", "ManagedResource"),
        ("druid.gardener.cloud/v1alpha1", "Etcd"),
        ("example.org/v1", "Deployment"),
        ("cert-manager.io/v1", "Certificate"),
    ],
)
def test_objects_of_other_kinds_are_always_healthy(api_version: str, kind: str) -> None:
    obj = live(api_version, kind, {"conditions": conditions(Ready="False", Available="False")})

    assert check(obj) is None
    assert not has_rule(GroupVersionKind.of(obj))


# Must hold


def test_a_pending_pod_is_unhealthy_unless_it_is_skipped_or_runs() -> None:
    skipped = live("v1", "Pod", {}, metadata={"annotations": {SKIP_HEALTH_CHECK: "true"}})

    assert check(pod("Pending")) is not None
    assert check(skipped) is None
    assert check(pod("Running")) is None


@pytest.mark.parametrize("value", ["True", "1", "t", "", " true", "yes"])
def test_only_the_exact_value_skips_a_check(value: str) -> None:
    annotations = {SKIP_HEALTH_CHECK: value}

    assert check(live("v1", "Pod", {}, metadata={"annotations": annotations})) is not None


@pytest.mark.parametrize("ingress", [{"ip": "192.0.2.1"}, {"hostname": "lb.example.org"}])
def test_a_load_balancer_is_healthy_once_it_has_an_address(ingress: JsonObject) -> None:
    assert check(service("LoadBalancer")) is not None
    assert check(service("LoadBalancer", ingress)) is None


@pytest.mark.parametrize(
    ("updated", "unavailable", "healthy"), [(4, 2, True), (4, 3, False), (10, 1, False)]
)
def test_a_daemon_set_may_lack_some_pods_only_while_it_is_updated(
    updated: int, unavailable: int, healthy: bool
) -> None:
    found = check(daemon_set(updated=updated, unavailable=unavailable, limit="20%"))

    assert (found is None) is healthy


# The table itself


def test_the_kinds_with_a_rule_are_those_of_the_spec() -> None:
    assert {str(gvk) for gvk in HEALTH_KINDS} == {
        "apps/v1/Deployment",
        "apps/v1/StatefulSet",
        "apps/v1/DaemonSet",
        "apps/v1/ReplicaSet",
        "v1/ReplicationController",
        "v1/Pod",
        "batch/v1/Job",
        "v1/Service",
        "apiextensions.k8s.io/v1/CustomResourceDefinition",
        "apiextensions.k8s.io/v1beta1/CustomResourceDefinition",
        "monitoring.coreos.com/v1/Prometheus",
        "monitoring.coreos.com/v1/Alertmanager",
        "autoscaling.k8s.io/v1/VerticalPodAutoscaler",
        "cert.gardener.cloud/v1alpha1/Certificate",
        "cert.gardener.cloud/v1alpha1/Issuer",
    }
    assert all(has_rule(gvk) for gvk in HEALTH_KINDS)


def test_another_version_of_a_kind_is_judged_by_the_same_rule() -> None:
    assert check(deployment() | {"apiVersion": "apps/v1beta2"}) == check(deployment())


@pytest.mark.parametrize(
    ("limit", "allowed"), [(0, 0), (-1, 0), ("9%", 0), ("10%", 1), ("100%", 10), (True, 0)]
)
def test_the_limit_of_an_update_is_a_number_or_a_share_rounded_down(
    limit: object, allowed: int
) -> None:
    def found(unavailable: int) -> str | None:
        return check(daemon_set(updated=4, unavailable=unavailable, limit=limit))

    assert found(allowed) is None
    assert found(allowed + 1) is not None


@pytest.mark.parametrize("limit", ["-20%", "+20%", "2e1%", "٢٠%", "%", "20", f"{'9' * 5000}%", 1.5])
def test_a_limit_that_cannot_be_determined_allows_nothing(limit: object) -> None:
    assert check(daemon_set(updated=4, unavailable=0, limit=limit)) is None
    assert check(daemon_set(updated=4, unavailable=1, limit=limit)) is not None


@given(st.data())
def test_a_malformed_object_is_judged_and_never_raises(damage: Damage, data: st.DataObject) -> None:
    assert check(damage(data, HEALTHY)) != ""


@given(st.none() | st.integers() | st.lists(st.integers()) | st.text())
def test_an_object_without_a_kind_is_healthy(kind: object) -> None:
    assert check({"apiVersion": "v1", "kind": kind}) is None
