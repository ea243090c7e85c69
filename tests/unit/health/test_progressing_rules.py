"""Each row of the table of spec 10 §9, in both directions; test_pod_count.py counts pods."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.marks import SKIP_HEALTH_CHECK
from pergola.api.objects import JsonObject
from pergola.health import PROGRESSING_KINDS, progressing

Damage = Callable[[st.DataObject, Sequence[JsonObject]], JsonObject]


def live(api_version: str, kind: str, status: JsonObject, **spec: Any) -> JsonObject:
    metadata = {"name": "it", "namespace": "default", "generation": 3}
    named = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
    return named | {"spec": spec, "status": {"observedGeneration": 3} | status}


def deployment(status: str = "True", reason: str = "NewReplicaSetAvailable") -> JsonObject:
    condition = {"type": "Progressing", "status": status, "reason": reason, "message": "so it is"}
    return live("apps/v1", "Deployment", {"conditions": [condition]})


def stateful_set(updated: int, **spec: int) -> JsonObject:
    return live("apps/v1", "StatefulSet", {"updatedReplicas": updated}, **spec)


def daemon_set(updated: int) -> JsonObject:
    status = {"updatedNumberScheduled": updated, "desiredNumberScheduled": 3}
    return live("apps/v1", "DaemonSet", status)


def monitoring(
    kind: str, updated: int = 2, status: str | None = "True", about: int = 3
) -> JsonObject:
    condition = {"type": "Reconciled", "status": status, "observedGeneration": about}
    found = {"updatedReplicas": updated, "conditions": [condition] if status else []}
    return live("monitoring.coreos.com/v1", kind, found, replicas=2)


def certificate(kind: str) -> JsonObject:
    return live("cert.gardener.cloud/v1alpha1", kind, {"state": "Pending"})


def behind(obj: JsonObject) -> JsonObject:
    return obj | {"status": obj["status"] | {"observedGeneration": 2}}


ROLLED_OUT = [
    deployment(),
    stateful_set(2, replicas=2),
    stateful_set(1),
    stateful_set(0, replicas=0),
    daemon_set(3),
    monitoring("Prometheus"),
    monitoring("Alertmanager"),
    monitoring("Prometheus", about=4),
    certificate("Certificate"),
    certificate("Issuer"),
]


@pytest.mark.parametrize("obj", ROLLED_OUT)
def test_an_object_that_is_rolled_out_is_not_progressing(obj: JsonObject) -> None:
    assert progressing(obj) is None


BEHIND = "observed generation 2 is behind generation 3"


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (behind(deployment()), BEHIND),
        (live("apps/v1", "Deployment", {}), "condition Progressing is missing"),
        (deployment(reason="ReplicaSetUpdated"), "Progressing is True (ReplicaSetUpdated)"),
        (deployment("Unknown"), "Progressing is Unknown (NewReplicaSetAvailable): so it is"),
        (behind(stateful_set(2, replicas=2)), BEHIND),
        (stateful_set(0), "0 of 1 replicas are updated"),
        (behind(daemon_set(3)), BEHIND),
        (monitoring("Prometheus", status=None), "condition Reconciled is missing"),
        (monitoring("Prometheus", status="False"), "condition Reconciled is False"),
        (monitoring("Prometheus", about=2), "condition Reconciled is about generation 2"),
        (monitoring("Alertmanager", status="Unknown"), "condition Reconciled is Unknown"),
        (behind(certificate("Certificate")), BEHIND),
        (behind(certificate("Issuer")), BEHIND),
    ],
)
def test_the_reason_of_a_rollout_is_reported(obj: JsonObject, words: str) -> None:
    assert words in (progressing(obj) or "")


# Must hold


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (stateful_set(1, replicas=2), "1 of 2 replicas are updated"),
        (daemon_set(2), "2 of 3 pods are updated"),
        (monitoring("Prometheus", 1), "1 of 2 replicas are updated"),
        (monitoring("Alertmanager", 1), "1 of 2 replicas are updated"),
    ],
)
def test_a_single_outdated_replica_is_a_rollout(obj: JsonObject, words: str) -> None:
    assert progressing(obj) == words


def test_a_deployment_past_its_deadline_is_progressing_unless_it_is_skipped() -> None:
    late = deployment("False", "ProgressDeadlineExceeded")
    skipped = late | {"metadata": {"generation": 3, "annotations": {SKIP_HEALTH_CHECK: "true"}}}

    assert "ProgressDeadlineExceeded" in (progressing(late) or "")
    assert progressing(skipped) is None


@pytest.mark.parametrize(("api_version", "kind"), [("v1", "ConfigMap"), ("batch/v1", "Job")])
def test_other_kinds_are_never_progressing(api_version: str, kind: str) -> None:
    assert progressing(behind(live(api_version, kind, {}))) is None


def test_the_kinds_that_roll_out_are_those_of_the_spec() -> None:
    assert {str(gvk) for gvk in PROGRESSING_KINDS} == {
        "apps/v1/Deployment",
        "apps/v1/StatefulSet",
        "apps/v1/DaemonSet",
        "monitoring.coreos.com/v1/Prometheus",
        "monitoring.coreos.com/v1/Alertmanager",
        "cert.gardener.cloud/v1alpha1/Certificate",
        "cert.gardener.cloud/v1alpha1/Issuer",
    }


@given(st.data())
def test_a_malformed_object_never_raises(damage: Damage, data: st.DataObject) -> None:
    assert progressing(damage(data, ROLLED_OUT)) != ""
